import java.nio.file.Files;
import java.nio.file.Path;

/** Allocates and keeps a lot and a fiftieth of it in turns, until a file comes. Arguments: the file, seconds a turn. Prints its pid first. */
public class Swing {
    static final Object[] kept = new Object[100_000];

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Path end = Path.of(a[0]);
        long turn = Long.parseLong(a[1]) * 1_000_000_000L, start = System.nanoTime();
        for (int at = 0; !Files.exists(end); ) {
            boolean busy = (System.nanoTime() - start) / turn % 2 == 1;
            long tick = System.nanoTime();
            for (int i = 0; i < (busy ? 50_000 : 1_000); i++) {
                Object x = new byte[i % 7 * 16];
                if (i % 2 == 0) kept[at = (at + 1) % kept.length] = x; // lives for 200,000 allocations
            }
            long rest = 4_000_000 - (System.nanoTime() - tick);
            if (rest > 0) Thread.sleep(rest / 1_000_000, (int) (rest % 1_000_000));
        }
        System.out.println("done");
    }
}
