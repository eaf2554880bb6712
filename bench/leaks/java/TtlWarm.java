import java.util.LinkedHashMap;
import java.util.Map;

/** No leak: a cache with an expiry of four tenths of the window, which is warm by then, at a steady load. */
public class TtlWarm {
    record Entry(double at, byte[] page) { }

    static final Map<Integer, Entry> cache = new LinkedHashMap<>();

    public static void main(String[] args) throws Exception {
        double ttl = Double.parseDouble(args[0]) * 0.4;
        Work.until(args, 300, i -> {
            double now = Work.seconds();
            cache.put(i, new Entry(now, new byte[2500]));
            var it = cache.values().iterator();
            while (it.hasNext() && it.next().at < now - ttl) it.remove();
        });
    }
}
