import java.lang.reflect.Array;
import java.util.Arrays;

/** Allocates arrays of twelve lengths, each at a site of its own (length 20 + k in makeK), and keeps some. Arguments: rounds, and how many
 * full collections come in between, by default none. With them half of the objects have no hash before they survive, and
 * their hashes must stay the same. */
public class Exact {
    static final Object[] KEPT = new Object[40000];
    static final int[] MODEL = new int[28];

    static Object make0() { return new int[20]; }

    static Object make1() { return new int[21]; }

    static Object make2() { return new int[22]; }

    static Object make3() { return new int[23]; }

    static Object make4() { return new byte[24]; }

    static Object make5() { return new byte[25]; }

    static Object make6() { return new String[26]; }

    static Object make7() { return new Object[27][]; }

    static Object make8() { return MODEL.clone(); }

    static Object make9() { return Arrays.copyOf(MODEL, 29); }

    static Object make10() { return Array.newInstance(Exact.class, 30); }

    static Object make11() { return (new long[2][31])[1]; }

    static Object make(int k) {
        switch (k) {
            case 0: return make0();
            case 1: return make1();
            case 2: return make2();
            case 3: return make3();
            case 4: return make4();
            case 5: return make5();
            case 6: return make6();
            case 7: return make7();
            case 8: return make8();
            case 9: return make9();
            case 10: return make10();
            default: return make11();
        }
    }

    static void collect() {
        int[] before = new int[KEPT.length], after = new int[KEPT.length];
        for (int i = 0; i < KEPT.length; i += 3) before[i] = System.identityHashCode(KEPT[i]);
        System.gc();
        for (int i = 0; i < KEPT.length; i += 3) after[i] = System.identityHashCode(KEPT[i]);
        if (!Arrays.equals(before, after)) throw new AssertionError("identity hashes have changed");
    }

    public static void main(String[] a) {
        long r = 88172645463325252L, sum = 0;
        int rounds = Integer.parseInt(a[0]), full = a.length > 1 ? Integer.parseInt(a[1]) : 0;
        for (int i = 0, at = 0; i < rounds; i++) {
            r ^= r << 13;
            r ^= r >>> 7;
            r ^= r << 17;
            Object o = make((int) (r >>> 33) % 12);
            if (full == 0 || (r & 16) == 0) sum += o.hashCode() & 1;
            if (full > 0 && (r & 32) == 0) {
                synchronized (o) {
                    sum++;
                }
            }
            if ((r & 7) == 0) KEPT[at = (at + 1) % KEPT.length] = o;
            if (full > 0 && i % (rounds / (full + 1)) == rounds / (full + 1) / 2) collect();
        }
        System.out.println(sum >= 0 ? "done" : "?");
    }
}
