import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Serves orders and keeps them in a map that nobody empties, until the OutOfMemoryError ends it. Argument: KiB that it keeps each second. */
public class Hoard {
    static final class Order {
        final List<String> lines = new ArrayList<>();
        final byte[] scan = new byte[1500];
    }

    static final Map<Integer, Order> orders = new HashMap<>();
    static volatile Object sink;

    static void keep(int id) {
        Order o = new Order(); // LEAK
        for (int i = 0; i < 4; i++) o.lines.add("line " + i + " of order " + id);
        orders.put(id, o);
    }

    public static void main(String[] a) throws Exception {
        int perSecond = Integer.parseInt(a[0]) / 2; // an order takes about 2 KiB
        long from = System.nanoTime();
        for (int id = 0; ; id++) {
            keep(id);
            for (int i = 0; i < 20; i++) sink = new byte[500]; // requests that are over
            long wait = id * 1_000_000_000L / perSecond - (System.nanoTime() - from);
            if (wait > 2_000_000) Thread.sleep(wait / 1_000_000);
        }
    }
}
