import java.util.Arrays;

/** Has full collections for want of room, in eden full of objects of which at most one lives. Arguments: seconds. */
public class Granted {
    static final class Stale { Object a, b; }

    static volatile Object sink;

    public static void main(String[] a) {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000_000L;
        Object[] keep = new Object[400];
        for (int n = 0; System.nanoTime() < end; n++) {
            keep[n % keep.length] = new byte[32 << 10];
            if (n % keep.length == keep.length - 1) Arrays.fill(keep, null);
            for (int i = 0; i < 1000; i++) sink = new Stale();
        }
        System.out.println("done");
    }
}
