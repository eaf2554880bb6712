import java.util.SplittableRandom;

/**
 * Holds many small objects, and replaces some of them all the time. Arguments: thousands of objects held, seconds of
 * work. Prints "built" when it holds them.
 */
public class Big {
    static final class Node {
        Node next;
        int value;
    }

    static Object[][] held;
    static volatile Object sink;

    static Object make(int k) {
        switch (k & 3) {
            case 0:
                return new byte[k >> 2 & 31];
            case 1:
                Node n = new Node();
                n.value = k;
                return n;
            case 2:
                return new int[k >> 2 & 3];
            default:
                return new Object();
        }
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), seconds = Integer.parseInt(a[1]);
        SplittableRandom random = new SplittableRandom(1);
        held = new Object[n][];
        for (int i = 0; i < n; i++) {
            Object[] x = new Object[1000];
            for (int k = 0; k < x.length; k++) x[k] = make(random.nextInt());
            held[i] = x;
        }
        System.out.println("built");
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (System.nanoTime() < end) {
            for (int k = 0; k < 2000; k++) {
                int r = random.nextInt();
                held[(r >>> 10) % n][(r & 1023) % 1000] = make(r * 31);
                sink = new byte[1000];
            }
            Thread.sleep(10);
        }
        System.out.println("done");
    }
}
