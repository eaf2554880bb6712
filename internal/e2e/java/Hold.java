import java.util.Random;

/** Builds a heap of all ages, says "ready", and stands still until its input ends: what a second observer sees then is what heapcam saw. */
public class Hold {
    static volatile Object sink;

    static final class Pair {
        final Object left;
        final Object right;

        Pair(Object left, Object right) {
            this.left = left;
            this.right = right;
        }
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Random r = new Random(5);
        Object[] ring = new Object[60_000];
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 600_000; i++) {
                Object o = i % 3 == 0 ? new Pair("p" + i, null) : i % 3 == 1 ? new int[r.nextInt(20)] : new Object[r.nextInt(5)];
                if (i % 4 == 0) ring[r.nextInt(ring.length)] = o;
                sink = o;
            }
            System.out.println("ready");
            if (System.in.read() < 0) break;
        }
        sink = ring;
        System.out.println("done");
    }
}
