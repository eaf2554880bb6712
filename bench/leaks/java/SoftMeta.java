import java.lang.ref.SoftReference;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: meta data of files, softly held in a map by name; the map removes what was cleared. */
public class SoftMeta {
    static final Map<String, SoftReference<long[]>> meta = new ConcurrentHashMap<>();
    static final Random random = new Random(5);

    static long[] of(String name) {
        SoftReference<long[]> s = meta.get(name);
        long[] m = s == null ? null : s.get();
        if (m == null) {
            m = new long[150];
            meta.put(name, new SoftReference<>(m));
        }
        return m;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            of("file " + random.nextInt(20000));
            if (i % 2000 == 0) meta.values().removeIf(s -> s.get() == null);
        });
    }
}
