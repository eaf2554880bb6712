import java.util.*;

/** Two threads, N rounds each: boxed numbers go through a list, a queue of entries and a map of sums. */
public class Driver {
    static final int COUNT = 40000;

    static long run(int seed, int n) {
        long sum = 0;
        for (int round = 0; round < n; round++) {
            ArrayList<Long> list = new ArrayList<>(COUNT);
            long x = seed + round;
            for (int i = 0; i < COUNT; i++) {
                for (int mix = 0; mix < 80; mix++) x = x * 6364136223846793005L + 1442695040888963407L;
                list.add(x >>> 20);
            }
            ArrayDeque<Map.Entry<Long, Integer>> queue = new ArrayDeque<>();
            for (int i = 0; i < COUNT; i++) {
                queue.add(new AbstractMap.SimpleImmutableEntry<>(list.get(i) + 1, i + 1000));
                if (queue.size() > 100) sum += queue.remove().getKey();
            }
            HashMap<Long, Long> groups = new HashMap<>();
            for (Long v : list) groups.merge(v % 257 + 1000, v, Long::sum);
            for (Map.Entry<Long, Long> e : groups.entrySet()) sum += e.getKey() ^ e.getValue();
        }
        return sum;
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime();
        long[] sums = new long[2];
        Thread[] ts = new Thread[2];
        for (int t = 0; t < 2; t++) {
            int me = t;
            ts[t] = new Thread(() -> sums[me] = run(me, n));
            ts[t].start();
        }
        for (Thread t : ts) t.join();
        if (sums[0] == 0 || sums[0] == sums[1]) System.exit(1);
        System.out.println("WORKLOAD numbers n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
