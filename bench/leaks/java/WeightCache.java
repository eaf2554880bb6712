import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: a cache of pages, bounded by the sum of their sizes; it is full when nine tenths of the window are over. */
public class WeightCache {
    static final Map<String, byte[]> pages = new ConcurrentHashMap<>();
    static final ArrayDeque<String> order = new ArrayDeque<>();
    static long weight;

    static void put(String key, byte[] page, long most) {
        pages.put(key, page);
        order.add(key);
        for (weight += page.length; weight > most; ) weight -= pages.remove(order.poll()).length;
    }

    public static void main(String[] args) throws Exception {
        long most = (long) (Double.parseDouble(args[0]) * 0.9 * 500 * 900);
        Work.until(args, 500, i -> put("/page/" + i, new byte[600 + i * 7919 % 600], most));
    }
}
