import java.util.ArrayList;
import java.util.List;

/**
 * A program of which it is known what lives: {@code Kept} from the start on, {@code Leaked} more and more, and of
 * {@code Dropped} nothing. Arguments: seconds, Leaked objects a second, Dropped objects a second.
 */
public class Watched {
    static final int KEPT = 20_000;

    static final class Kept {
        final byte[] data = new byte[1000];
    }

    static final class Leaked {
        long a, b, c, d, e, f, g, h;
    }

    static final class Dropped {
        long a, b, c, d, e, f, g, h;
    }


    static Object[] kept;
    static final List<Object> leaked = new ArrayList<>();
    static volatile Object sink;

    static void keep() {
        kept = new Object[KEPT];
        for (int i = 0; i < KEPT; i++) kept[i] = new Kept();
    }

    static void leak(int n) {
        for (int i = 0; i < n; i++) leaked.add(new Leaked());
    }

    static void drop(int n) {
        for (int i = 0; i < n; i++) sink = new Dropped();
    }

    public static void main(String[] args) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        int seconds = Integer.parseInt(args[0]), leak = Integer.parseInt(args[1]), drop = Integer.parseInt(args[2]);
        keep();
        long begin = System.nanoTime();
        for (int tick = 0; tick < seconds * 50; tick++) {
            leak(leak / 50);
            drop(drop / 50);
            if (args.length > 3 && tick % 50 == 0) System.gc();
            long left = begin + (tick + 1) * 20_000_000L - System.nanoTime();
            if (left > 0) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
        }
        System.out.println("leaked " + leaked.size());
        System.out.println("done");
    }
}
