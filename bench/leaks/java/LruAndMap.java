import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/** Leaks: a service with a bounded LRU cache, which is no leak, and a map that nobody bounds, which is. */
public class LruAndMap {
    static final Map<Integer, byte[]> pages = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> e) { return size() > 8000; }
    };
    static final Map<String, long[]> byUrl = new HashMap<>();
    static final Random random = new Random(3);

    static void page(int id) {
        if (pages.get(id) == null) pages.put(id, new byte[2000 + id % 500]);
    }

    static void record(String url) {
        byUrl.computeIfAbsent(url, u -> new long[100])[0]++; // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 600, i -> {
            page(random.nextInt(1 << 20));
            record("/item/" + i); // LEAK
        });
    }
}
