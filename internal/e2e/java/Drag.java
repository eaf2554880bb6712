import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Plants drag: batches of objects of nine sites, each used for some rounds of 50 ms and then only held for others.
 * Prints for each site the bytes and the bytes × seconds between last use and death. Argument: rounds.
 */
public class Drag {
    static class Fat { // 272 bytes
        long a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7;
        long c0, c1, c2, c3, c4, c5, c6, c7, d0, d1, d2, d3, d4, d5, d6, d7;
    }

    static class Plain extends Fat {}

    static class Locked extends Fat {
        private int n;

        synchronized int bump() { return ++n; }
    }

    interface Called {
        int answer();
    }

    static class Implements extends Fat implements Called {
        public int answer() { return 1; }
    }

    /** Used, held: rounds. */
    static final int[][] TIMES = {{30, 0}, {4, 26}, {10, 10}, {0, 30}, {5, 15}, {5, 20}, {8, 12}, {10, 15}, {6, 18}};
    static final int[] SIZE = {4016, 4016, 272, 4016, 280, 272, 4016, 24, 48};
    static final int[] EACH = {50, 50, 750, 50, 750, 750, 50, 5000, 3000};

    static Object make0() { return new int[1000]; }

    static Object make1() { return new byte[4000]; }

    static Object make2() { return new Plain(); }

    static Object make3() { return new float[1000]; }

    static Object make4() { return new Locked(); }

    static Object make5() { return new Implements(); }

    static Object make6() { return new long[500]; }

    static Object make7() { return new ArrayList<String>(0); }

    static Object make8() { // the JDK makes an entry of 32 bytes and a table of 80
        Map<String, String> m = new HashMap<>();
        m.put("k", "v");
        return m;
    }

    static Object make(int site) {
        switch (site) {
            case 0: return make0();
            case 1: return make1();
            case 2: return make2();
            case 3: return make3();
            case 4: return make4();
            case 5: return make5();
            case 6: return make6();
            case 7: return make7();
            default: return make8();
        }
    }

    static int use(int site, Object o) {
        switch (site) {
            case 0: return ((int[]) o)[3] + 1;
            case 1: return ((byte[]) o).length;
            case 2: ((Plain) o).c3 = 5L; return 1;
            case 4: return ((Locked) o).bump();
            case 5: return ((Called) o).answer();
            case 6: ((long[]) o)[7] = 5L; return 1;
            case 8: return ((Map<?, ?>) o).get("k") == null ? 0 : 1;
            default: return ((List<?>) o).size() + 1;
        }
    }

    static volatile byte[] garbage; // which no compiler leaves out: collections must come at an even rate

    static class Batch {
        Object[] objects;
        long used, born;
        int age;
    }

    public static void main(String[] a) throws Exception {
        int rounds = Integer.parseInt(a[0]), n = TIMES.length;
        List<ArrayDeque<Batch>> kept = new ArrayList<>();
        for (int s = 0; s < n; s++) kept.add(new ArrayDeque<>());
        double[] drag = new double[n], bytes = new double[n];
        long sum = 0, next = System.nanoTime();
        for (int r = 0; r < rounds + 15; r++) {
            for (int s = 0; s < n && r < rounds; s++) {
                Batch b = new Batch();
                b.born = b.used = System.nanoTime();
                b.objects = new Object[EACH[s]];
                for (int i = 0; i < EACH[s]; i++) b.objects[i] = make(s);
                kept.get(s).addLast(b);
                for (Batch x : kept.get(s)) {
                    if (x.age++ >= TIMES[s][0]) continue;
                    for (Object o : x.objects) sum += use(s, o);
                    x.used = System.nanoTime();
                }
                Batch first = kept.get(s).peekFirst();
                if (first.age < TIMES[s][0] + TIMES[s][1]) continue;
                kept.get(s).removeFirst();
                bytes[s] += (double) SIZE[s] * EACH[s];
                drag[s] += (double) SIZE[s] * EACH[s] * (System.nanoTime() - first.used) / 1e9;
            }
            for (int i = 0; i < 14000; i++) garbage = new byte[1000];
            next += 50_000_000;
            long left = next - System.nanoTime();
            if (left > 0) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
        }
        for (int s = 0; s < n; s++) System.out.println("site " + s + " " + (long) bytes[s] + " " + (long) drag[s]);
        System.out.println(sum > 0 && garbage != null ? "done" : "?");
    }
}
