import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Leaks: tasks come faster than the one thread of a pool does them. */
public class Executor {
    static long sum;

    static void submit(ExecutorService pool, int i) {
        long[] data = new long[150]; // LEAK
        pool.execute(() -> { // LEAK
            try {
                Thread.sleep(4);
            } catch (InterruptedException e) {
                return;
            }
            sum += data.length;
        });
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        Work.until(args, 600, i -> submit(pool, i));
        pool.shutdownNow();
    }
}
