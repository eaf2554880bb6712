import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.util.ArrayDeque;

/**
 * Requests at a steady rate: each makes a chain of 1000 nodes and ends a few milliseconds later. Nothing else lives, so
 * what stays in old space is what something keeps from dying. Arguments: seconds, requests a second.
 */
public class Requests {
    static final class Node {
        final Node next;
        long value;

        Node(Node next) {
            this.next = next;
        }
    }

    static Node request() {
        Node n = null;
        for (int i = 0; i < 1000; i++) n = new Node(n);
        return n;
    }

    static long count(String kind) {
        long n = 0;
        for (GarbageCollectorMXBean b : ManagementFactory.getGarbageCollectorMXBeans())
            if (b.getName().equals("ZGC " + kind + " Cycles")) n += b.getCollectionCount();
        return n;
    }

    static long old() {
        for (MemoryPoolMXBean p : ManagementFactory.getMemoryPoolMXBeans())
            if (p.getName().contains("Old")) return p.getUsage().getUsed();
        return 0;
    }

    public static void main(String[] args) throws Exception {
        int seconds = Integer.parseInt(args[0]), perTick = Integer.parseInt(args[1]) / 100;
        ArrayDeque<Node> running = new ArrayDeque<>();
        long begin = System.nanoTime(), sum = 0, most = 0, looks = 0, requests = 0;
        for (int tick = 0; tick < seconds * 100; tick++) {
            for (int i = 0; i < perTick; i++, requests++) {
                running.add(request());
                if (running.size() > 20) running.remove();
            }
            if (tick % 10 == 0 && tick > 500) {
                long used = old();
                sum += used;
                most = Math.max(most, used);
                looks++;
            }
            long left = begin + (tick + 1) * 10_000_000L - System.nanoTime();
            if (left > 0) Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
        }
        System.out.println("requests " + requests + " minors " + count("Minor") + " majors " + count("Major")
            + " old " + (looks == 0 ? 0 : sum / looks) + " most " + most + " last " + old());
        System.out.println("done");
    }
}
