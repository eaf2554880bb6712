import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/** No leak: a bounded LRU cache that is full after a tenth of the window; what falls out of it is old. */
public class Lru {
    static final Map<Integer, byte[]> pages = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> e) { return size() > 6000; }
    };

    public static void main(String[] args) throws Exception {
        Random random = new Random(3);
        Work.until(args, 1000, i -> pages.computeIfAbsent(random.nextInt(1 << 20), k -> new byte[2000 + k % 500]));
    }
}
