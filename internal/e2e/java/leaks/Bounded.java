import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;

/** No leak: a bounded map, full after two fifths of the window, that lets go the oldest; a linked queue has the order. */
public class Bounded {
    static final ConcurrentHashMap<String, long[]> map = new ConcurrentHashMap<>();
    static final ConcurrentLinkedDeque<String> order = new ConcurrentLinkedDeque<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 900, i -> {
            String key = "key " + i;
            map.put(key, new long[120]);
            order.add(key);
            if (map.size() > 22000) map.remove(order.poll());
        });
    }
}
