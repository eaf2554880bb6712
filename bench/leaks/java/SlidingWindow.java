import java.util.TreeMap;

/** No leak: the requests of the newest tenth of the window, by time, for a limit of rates; older ones are cut off. */
public class SlidingWindow {
    static final TreeMap<Long, String> seen = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        long ns = (long) (Double.parseDouble(args[0]) * 1e8);
        Work.until(args, 700, i -> {
            long now = System.nanoTime();
            for (int k = 0; k < 3; k++) seen.put(now + k, "client " + i + " asked for " + k);
            if (i % 300 == 0) seen.headMap(now - ns).clear();
        });
    }
}
