import java.util.Random;

/**
 * An old generation that dies at random, so that G1 marks and then makes mixed collections. Arguments: milliseconds, thousand slots, and
 * milliseconds between full collections if it is to cause any.
 */
public class Mixed {
    static volatile Object sink;

    public static void main(String[] a) {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000;
        Object[][] old = new Object[Integer.parseInt(a[1])][1000];
        Random r = new Random(3);
        long every = a.length > 2 ? Long.parseLong(a[2]) * 1_000_000 : Long.MAX_VALUE / 2, full = System.nanoTime() + every;
        while (System.nanoTime() < end) {
            for (int i = 0; i < 2000; i++) {
                old[r.nextInt(old.length)][r.nextInt(1000)] = i % 4 == 0 ? new Object[r.nextInt(20)] : new byte[r.nextInt(150)];
                sink = new byte[40];
            }
            if (System.nanoTime() - full > 0) {
                System.gc();
                full = System.nanoTime() + every;
            }
        }
        sink = old;
        System.out.println("done");
    }
}
