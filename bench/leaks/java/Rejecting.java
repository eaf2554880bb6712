import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** No leak: a thread pool with a queue of 6000 tasks, full after some seconds; what does not fit is rejected. */
public class Rejecting {
    public static void main(String[] args) throws Exception {
        AtomicLong sum = new AtomicLong();
        ThreadPoolExecutor pool = new ThreadPoolExecutor(2, 2, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<>(6000),
            r -> {
                Thread t = new Thread(r);
                t.setDaemon(true);
                return t;
            }, new ThreadPoolExecutor.DiscardPolicy());
        Work.until(args, 800, i -> {
            byte[] payload = new byte[1800];
            pool.execute(() -> {
                sum.addAndGet(payload.length);
                try {
                    Thread.sleep(5);
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                }
            });
        });
        System.out.println(sum);
    }
}
