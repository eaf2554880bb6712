import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;

/**
 * Allocates, and keeps what it allocates for a while, fifty times as much in every other of the first phases. Arguments: the file that ends it, seconds of a
 * phase, objects kept and objects a second in the busy phases, number of phases. Prints its pid first and "done" last.
 */
public class Tides {
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Path file = Path.of(a[0]);
        long phase = Long.parseLong(a[1]) * 1_000_000_000L, begun = System.nanoTime();
        int kept = Integer.parseInt(a[2]);
        long rate = Long.parseLong(a[3]), phases = Long.parseLong(a[4]);
        ArrayDeque<Object> queue = new ArrayDeque<>();
        while (!Files.exists(file)) {
            long at = (System.nanoTime() - begun) / phase;
            boolean busy = at % 2 == 1 && at < phases;
            int keep = busy ? kept : kept / 50;
            long slice = (busy ? rate : rate / 50) / 50, from = System.nanoTime(); // of 20 ms
            for (long i = 0; i < slice; i++) {
                Object o = (i & 3) == 0 ? new byte[64] : (i & 3) == 1 ? new long[]{i} : (i & 3) == 2 ? new Object[]{sink} : new StringBuilder(8);
                if (o instanceof Object[]) ((Object[]) o)[0] = null;
                if ((i & 1) == 0) queue.add(o);
                else sink = o;
            }
            while (queue.size() > keep) queue.poll();
            long left = 20_000_000L - (System.nanoTime() - from);
            if (left > 0) Thread.sleep(left / 1_000_000);
        }
        System.out.println("done");
    }
}
