import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Churn with objects of all ages, from two threads. Arguments: rounds of each thread (200 objects a round, 30000 rounds take about a second),
 * slots kept. Work is given and not time, so that a slow machine records as much as a fast one. Prints its pid first and "done" last.
 */
public class Steady {
    static final class Node {
        final Node next;
        final String name;
        final int[] data;

        Node(Node next, String name, int[] data) {
            this.next = next;
            this.name = name;
            this.data = data;
        }
    }

    static volatile Object sink;

    static void work(int seed, int rounds, int slots) {
        Random r = new Random(seed);
        Object[] ring = new Object[slots];
        Map<Integer, List<Node>> map = new HashMap<>();
        for (int i = 0; i < rounds; i++) {
            for (int k = 0; k < 200; k++) {
                int at = r.nextInt(ring.length);
                Object o;
                switch (r.nextInt(6)) {
                    case 0: o = new byte[r.nextInt(300)]; break;
                    case 1: o = new Node(null, "node " + i, new int[r.nextInt(8)]); break;
                    case 2: o = new Object[] {ring[at], new long[3]}; break;
                    case 3: o = new StringBuilder().append(i).append(':').append(k).toString(); break;
                    default: o = new Object();
                }
                if (o instanceof Object[] && ((Object[]) o)[0] instanceof Object[]) ((Object[]) o)[0] = null;
                if (k % 3 == 0) ring[at] = o;
                else sink = o;
            }
            List<Node> l = map.computeIfAbsent(r.nextInt(200), x -> new ArrayList<>());
            l.add(new Node(null, "kept", new int[4]));
            if (l.size() > 50) map.remove(r.nextInt(200));
        }
        sink = map;
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        int rounds = Integer.parseInt(a[0]);
        int slots = Integer.parseInt(a[1]);
        Thread[] ts = new Thread[2];
        for (int i = 0; i < ts.length; i++) {
            int n = i;
            ts[i] = new Thread(() -> work(n, rounds, slots));
            ts[i].start();
        }
        for (Thread t : ts) t.join();
        System.out.println("done");
    }
}
