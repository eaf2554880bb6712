import java.util.Random;

/**
 * Fills its heap to a share that is held, then leaks a small part of all it allocates until the OutOfMemoryError, and prints the milliseconds from full
 * to the error. Arguments: percent of the heap that is held before the clock starts; of how many objects one leaks.
 */
public class Exhaust {
    static final class Node { Node next; int a, b; }

    static volatile Object sink;
    static Object held;
    static Node leak;
    static final Random random = new Random(1);

    static Object[] heap(long bytes) {
        Object[] all = null;
        for (long n = 0; n < bytes; ) {
            Object[] some = new Object[100];
            some[0] = all;
            all = some;
            n += 416;
            for (int i = 1; i < some.length; i++) {
                int k = random.nextInt(60);
                if (random.nextBoolean()) { some[i] = new Node(); n += 24; }
                else if (random.nextBoolean()) { some[i] = new byte[k]; n += 16 + k; }
                else { some[i] = random.nextBoolean() ? new Object[k / 4] : new int[k / 4]; n += 16 + k; }
            }
        }
        return all;
    }

    public static void main(String[] a) {
        long max = Runtime.getRuntime().maxMemory();
        held = heap(max * Integer.parseInt(a[0]) / 100);
        int every = Integer.parseInt(a[1]);
        long from = System.nanoTime(), n = 0;
        try {
            for (;; n++) {
                Node x = new Node();
                sink = x;
                if (n % every == 0) { x.next = leak; leak = x; }
            }
        } catch (OutOfMemoryError e) {
            leak = null;
            held = null;
            long ms = (System.nanoTime() - from) / 1_000_000;
            System.out.println("exhausted after " + ms + " ms, " + n + " objects");
        }
    }
}
