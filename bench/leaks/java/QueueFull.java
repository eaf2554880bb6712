import java.util.concurrent.ArrayBlockingQueue;

/** No leak: a bounded queue that is full from the start; the consumer takes what the producer adds. */
public class QueueFull {
    public static void main(String[] args) throws Exception {
        ArrayBlockingQueue<byte[]> queue = new ArrayBlockingQueue<>(15000);
        for (int i = 0; i < 15000; i++) queue.add(new byte[1000]);
        Work.until(args, 800, i -> {
            queue.poll();
            queue.offer(new byte[1000]);
        });
    }
}
