import java.util.concurrent.LinkedBlockingQueue;

/** No leak: a consumer is too slow for the first half of the window, then its peer is well again and it catches up. */
public class CatchesUp {
    static final LinkedBlockingQueue<int[]> queue = new LinkedBlockingQueue<>();
    static volatile boolean well;
    static long sum;

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Thread t = new Thread(() -> {
            try {
                for (;; Thread.sleep(well ? 1 : 5)) sum += queue.take().length;
            } catch (InterruptedException e) {
                return;
            }
        }, "consumer");
        t.setDaemon(true);
        t.start();
        Work.until(args, 450, i -> {
            queue.add(new int[500]);
            well = Work.seconds() > end / 2;
        });
    }
}
