import java.util.ArrayDeque;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Leaks: each worker of a pool pushes what it does on a stack of its thread; an early return does not pop it. */
public class Breadcrumbs {
    static final ThreadLocal<ArrayDeque<Object[]>> context = ThreadLocal.withInitial(ArrayDeque::new);

    static void handle(int i) {
        context.get().push(new Object[] {"request-" + i, new int[60], "user " + i % 3000}); // LEAK
        if (i % 5 == 0) return;
        context.get().pop();
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(12);
        Work.until(args, 500, i -> {
            for (int k = 0; k < 6; k++) {
                int n = 6 * i + k;
                pool.execute(() -> handle(n)); // LEAK
            }
        });
        pool.shutdownNow();
    }
}
