import java.util.ArrayDeque;

/** No leak: a pool that grows with the load to its limit, which it reaches after a quarter of the window. */
public class PoolGrows {
    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        ArrayDeque<byte[]> idle = new ArrayDeque<>();
        ArrayDeque<byte[]> busy = new ArrayDeque<>();
        int most = 1200;
        Work.until(args, 600, i -> {
            byte[] b = idle.poll();
            busy.add(b == null ? new byte[8000] : b);
            double size = most * Math.min(1, Work.seconds() / (end / 4));
            while (busy.size() > size) idle.add(busy.poll());
        });
    }
}
