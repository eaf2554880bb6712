import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Churn with objects of all ages, from two threads, until somebody makes a file. Arguments: the file, slots kept, rounds a millisecond of each
 * thread (200 objects a round; 0: as many as it can). Prints its pid first and "done" last.
 */
public class Until {
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
    static volatile boolean over;

    static void work(int seed, int slots, int rate) {
        Random r = new Random(seed);
        Object[] ring = new Object[slots];
        Map<Integer, List<Node>> map = new HashMap<>();
        long begun = System.nanoTime();
        for (int i = 0; !over; i++) {
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
            if (rate > 0 && i % rate == 0) {
                long ahead = begun + i / rate * 1_000_000L - System.nanoTime();
                if (ahead > 1_000_000) {
                    try {
                        Thread.sleep(ahead / 1_000_000);
                    } catch (InterruptedException e) {
                        return;
                    }
                } else if (ahead < 0) { // what a busy machine did not let it do is not made up for
                    begun -= ahead;
                }
            }
        }
        sink = map;
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Path file = Path.of(a[0]);
        Thread[] ts = new Thread[2];
        for (int i = 0; i < ts.length; i++) {
            int n = i;
            ts[i] = new Thread(() -> work(n, Integer.parseInt(a[1]), Integer.parseInt(a[2])));
            ts[i].start();
        }
        while (!Files.exists(file)) Thread.sleep(20);
        over = true;
        for (Thread t : ts) t.join();
        System.out.println("done");
    }
}
