import java.util.HashSet;
import java.util.IdentityHashMap;

/**
 * What identity hashes with a site cost a program that uses them: N objects of one site survive, then become elements of
 * a HashSet and keys of an IdentityHashMap. Prints N, how many hashes are distinct, and CPU time in ms of either.
 */
public class Hashes {
    static Object make() { return new Object(); }

    public static void main(String[] a) {
        int n = Integer.parseInt(a[0]);
        for (int round = 0; round < 3; round++) { // the last one counts: the others warm up
            Object[] all = new Object[n];
            for (int i = 0; i < n; i++) all[i] = make();
            long[][] junk = new long[64][];
            for (int i = 0; i < 20000; i++) junk[i % 64] = new long[8 << 10]; // young collections
            long t0 = cpu();
            HashSet<Object> set = new HashSet<>();
            for (Object o : all) set.add(o);
            int found = 0;
            for (Object o : all) found += set.contains(o) ? 1 : 0;
            long t1 = cpu();
            IdentityHashMap<Object, Object> map = new IdentityHashMap<>();
            for (Object o : all) map.put(o, o);
            for (Object o : all) found += map.containsKey(o) ? 1 : 0;
            long t2 = cpu();
            if (found != 2 * n || set.size() != n || map.size() != n) throw new AssertionError();
            int[] hashes = new int[n];
            for (int i = 0; i < n; i++) hashes[i] = System.identityHashCode(all[i]);
            java.util.Arrays.sort(hashes);
            int distinct = 1;
            for (int i = 1; i < n; i++) distinct += hashes[i] != hashes[i - 1] ? 1 : 0;
            if (round == 2)
                System.out.println("HASHES " + n + " " + distinct + " " + (t1 - t0) / 1000000 + " " + (t2 - t1) / 1000000);
        }
    }

    static long cpu() {
        return java.lang.management.ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
