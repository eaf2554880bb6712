import java.util.Random;

/**
 * A calm service whose heap then fills up: garbage at a third of the heap, and from then on full collections, one after the other, over millions of
 * small objects. Arguments: milliseconds of calm, of thrashing, percent of the heap that is held while it thrashes.
 */
public class Thrash {
    static final class Node { Node next; int a, b; }

    static volatile Object sink;

    static final Random random = new Random(1);

    /** Many objects of several classes and random sizes: what stands where cannot be guessed. */
    static Object[] heap(long bytes) {
        Object[] all = null;
        for (long n = 0; n < bytes; ) {
            Object[] some = new Object[100];
            some[0] = all;
            all = some;
            for (int i = 1; i < some.length; i++) {
                int k = random.nextInt(60);
                if (random.nextBoolean()) some[i] = new Node();
                else if (random.nextBoolean()) some[i] = new byte[k];
                else some[i] = random.nextBoolean() ? new Object[k / 4] : new int[k / 4];
                n += 28 + k / 2;
            }
        }
        return all;
    }

    public static void main(String[] a) throws Exception {
        long max = Runtime.getRuntime().maxMemory();
        Object[] held = heap(max / 3);
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000;
        Node[] young = new Node[1000];
        for (int i = 0; System.nanoTime() < end; i++) {
            young[i % young.length] = new Node();
            if (i % 100_000 == 0) Thread.sleep(10);
        }
        Object[] more = heap(max * Integer.parseInt(a[2]) / 100 - max / 3);
        end = System.nanoTime() + Long.parseLong(a[1]) * 1_000_000;
        byte[][] churn = new byte[200][];
        for (int i = 0; System.nanoTime() < end; i++) churn[i % churn.length] = new byte[100 + random.nextInt(4000)];
        sink = new Object[] {held, more};
        System.out.println("done");
    }
}
