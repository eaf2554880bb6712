import java.util.ArrayDeque;
import java.util.Random;

/** No leak: a pool of buffers that grows to the most that were ever in use at once; loads come by chance. */
public class BufferPool {
    static final ArrayDeque<byte[]> free = new ArrayDeque<>();
    static final ArrayDeque<byte[]> used = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        Random random = new Random(2);
        Work.until(args, 400, i -> {
            double want = 300 + 200 * random.nextGaussian();
            while (used.size() < want) {
                byte[] b = free.poll();
                used.add(b == null ? new byte[16384] : b);
            }
            for (int k = 0; k < 20 && !used.isEmpty(); k++) free.add(used.poll());
        });
        System.out.println(free.size() + used.size());
    }
}
