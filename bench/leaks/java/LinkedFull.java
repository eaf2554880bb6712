import java.util.concurrent.LinkedBlockingQueue;

/** No leak: a bounded linked queue that fills up in a fifth of the window. */
public class LinkedFull {
    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        int most = (int) (end / 5 * 700);
        LinkedBlockingQueue<long[]> queue = new LinkedBlockingQueue<>(most);
        Work.until(args, 700, i -> {
            if (queue.size() == most) queue.poll();
            queue.offer(new long[130]);
        });
    }
}
