import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** No leak: a cache of pages by the clock algorithm, at its capacity after a quarter of the window. */
public class ClockCache {
    static final int most = 12000;
    static final Map<Long, Integer> where = new HashMap<>();
    static final Object[] pages = new Object[most];
    static final long[] keys = new long[most];
    static final boolean[] touched = new boolean[most];
    static int hand, count;

    static Object get(long key) {
        Integer at = where.get(key);
        if (at == null) {
            while (count == most && touched[hand]) {
                touched[hand] = false;
                hand = (hand + 1) % most;
            }
            at = count < most ? count++ : hand;
            if (pages[at] != null) where.remove(keys[at]);
            hand = (hand + 1) % most;
            keys[at] = key;
            pages[at] = new short[600 + (int) (key % 300)];
            where.put(key, at);
        }
        touched[at] = true;
        return pages[at];
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Random random = new Random(4);
        int per = (int) (most / (end / 4) * 1.15);
        Work.until(args, per, i -> {
            get(random.nextInt(60000));
            get(random.nextInt(300));
        });
    }
}
