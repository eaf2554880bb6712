import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Leaks: each worker of a pool keeps what every job left in its thread local. */
public class ThreadLocals {
    static final ThreadLocal<Map<Integer, char[]>> context = ThreadLocal.withInitial(HashMap::new);

    static void job(int i) {
        context.get().put(i, new char[100 + i % 100]); // LEAK
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        Work.until(args, 2000, i -> { if (i % 3 == 0) pool.execute(() -> job(i)); });
        pool.shutdownNow();
    }
}
