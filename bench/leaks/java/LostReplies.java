import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/** Leaks: requests wait for replies in a map by number; the reply to one in eight is lost, and nothing times out. */
public class LostReplies {
    static final Map<Long, CompletableFuture<byte[]>> pending = new ConcurrentHashMap<>();
    static final AtomicLong id = new AtomicLong();

    static void call(byte[] body) {
        long n = id.incrementAndGet();
        CompletableFuture<byte[]> f = new CompletableFuture<>(); // LEAK
        f.thenApply(reply -> reply.length + body.length); // LEAK
        pending.put(n, f); // LEAK
        long late = n - 20;
        if (late > 0 && late % 8 != 0) pending.remove(late).complete(new byte[300]);
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 1500, i -> call(new byte[1500])); // LEAK
        System.out.println("kept " + pending.size() * 1700L);
    }
}
