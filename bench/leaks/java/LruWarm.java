import java.util.LinkedHashMap;
import java.util.Map;

/** No leak: a cache of the newest pages, which is full after four ninths of the window. */
public class LruWarm {
    public static void main(String[] args) throws Exception {
        int most = (int) (Double.parseDouble(args[0]) * 400 * 4 / 9);
        Map<Integer, byte[]> pages = new LinkedHashMap<>(16, 0.75f, true) {
            @Override protected boolean removeEldestEntry(Map.Entry<Integer, byte[]> e) { return size() > most; }
        };
        Work.until(args, 400, i -> {
            pages.put(i, new byte[1800]);
            pages.get(i / 2);
        });
    }
}
