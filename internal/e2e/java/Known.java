import java.util.ArrayList;
import java.util.List;

/**
 * Known objects from known sites, held for good, in a sea of garbage. Argument: rounds. A comment "SITE method class objects" tells of each
 * site how many objects of a class it gives a round; the collections after the last round see exactly these. A second argument makes it
 * rest so many milliseconds every 100 rounds: when every allocation is a sample the probe's buffer needs the time.
 */
public class Known {
    static final class Apple {
        long a, b, c;
    }

    static final class Pear {
        Object a, b, c, d, e, f;
    }

    static final class Plum {
        int a;
    }

    static volatile Object sink;
    static final List<Object> held = new ArrayList<>();

    static Object apple() {
        return new Apple(); // SITE apple Known$Apple 3
    }

    static Object pear() {
        return new Pear(); // SITE pear Known$Pear 2
    }

    static Object otherApple() {
        return new Apple(); // SITE otherApple Known$Apple 1
    }

    static Object plum() {
        return new Plum(); // SITE plum Known$Plum 5
    }

    static void arrays() {
        held.add(new byte[2000]); // SITE arrays byte[] 1
        held.add(new byte[100]); // SITE arrays byte[] 1
        held.add(new byte[500]); // SITE arrays byte[] 1
        held.add(new int[10]); // SITE arrays int[] 1
        held.add(new int[200]); // SITE arrays int[] 1
        held.add(new long[30]); // SITE arrays long[] 1
        held.add(new long[4]); // SITE arrays long[] 1
        held.add(new char[77]); // SITE arrays char[] 1
        held.add(new short[1000]); // SITE arrays short[] 1
        held.add(new double[12]); // SITE arrays double[] 1
        held.add(new Object[40]); // SITE arrays java.lang.Object[] 1
        held.add(new String[9]); // SITE arrays java.lang.String[] 1
        held.add(new Apple[25]); // SITE arrays Known$Apple[] 1
    }

    /** Sizes of a site may differ. */
    static Object mixed(int i) {
        return new float[i % 60 * 10]; // SITE mixed float[] 1
    }

    static void pairs() {
        for (int i = 0; i < 2; i++) {
            held.add(new boolean[150]); // SITE pairs boolean[] 2
            held.add(new Pear()); // SITE pairs Known$Pear 2
        }
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), rest = a.length > 1 ? Integer.parseInt(a[1]) : 0;
        // The JVM made this thread's first draw before anybody could set the interval: 512 KiB on average.
        for (int i = 0; i < 256; i++) sink = new byte[1 << 16];
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++) held.add(apple());
            for (int k = 0; k < 2; k++) held.add(pear());
            for (int k = 0; k < 5; k++) held.add(plum());
            held.add(otherApple());
            arrays();
            pairs();
            held.add(mixed(i));
            for (int k = 0; k < 10; k++) sink = new byte[100];
            if (rest > 0 && i % 100 == 0) Thread.sleep(rest);
        }
        for (int i = 0; i < 3; i++) {
            System.gc();
            for (int k = 0; k < (rest > 0 ? 5_000 : 100_000); k++) sink = new byte[200];
        }
        System.gc();
        System.out.println("done");
    }
}
