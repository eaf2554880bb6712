import java.util.LinkedHashMap;
import java.util.Map;

/** Leaks: a cache with a time to live that is checked only when the same key is asked for again, which never happens. */
public class TtlNever {
    static final class Entry {
        final double until;
        final int[] value = new int[350]; // LEAK

        Entry(double until) { this.until = until; }
    }

    static final Map<String, Entry> cache = new LinkedHashMap<>();

    static Entry get(String key) {
        Entry e = cache.get(key);
        if (e == null || e.until < Work.seconds()) {
            e = new Entry(Work.seconds() + 2); // LEAK
            cache.put(key, e); // LEAK
        }
        return e;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> get("session/" + i / 2)); // LEAK
    }
}
