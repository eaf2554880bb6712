import java.util.concurrent.CompletableFuture;

/** Leaks: each request adds a listener to a future that never completes. */
public class Futures {
    static final CompletableFuture<String> shutdown = new CompletableFuture<>();

    static void handle(int i) {
        byte[] buffer = new byte[900]; // LEAK
        shutdown.thenAccept(s -> buffer[0]++); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> handle(i));
    }
}
