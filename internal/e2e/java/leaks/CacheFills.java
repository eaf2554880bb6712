import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/** No leak: a cache that fills in the first third and evicts from then on. */
public class CacheFills {
    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        int most = (int) (end / 3 * 1000);
        Map<Integer, byte[]> cache = new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> e) { return size() > most; }
        };
        Random r = new Random(3);
        Work.until(args, 2000, i -> {
            if (i % 2 == 0 && cache.get(r.nextInt(4 * most)) == null) cache.put(i, new byte[1500]);
        });
    }
}
