import java.util.ArrayDeque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: the times of answers of each of 200 hosts, for as long as a quarter of the window. */
public class HostStats {
    record Sample(long at, double millis, String path) { }

    static final Map<String, ArrayDeque<Sample>> hosts = new ConcurrentHashMap<>();

    static void add(String host, Sample s, long oldest) {
        ArrayDeque<Sample> all = hosts.computeIfAbsent(host, k -> new ArrayDeque<>());
        all.addLast(s);
        while (all.peekFirst().at < oldest) all.pollFirst();
    }

    public static void main(String[] args) throws Exception {
        long span = (long) (Double.parseDouble(args[0]) * 0.25 * 1e9);
        Work.until(args, 600, i -> {
            long now = System.nanoTime();
            for (int k = 0; k < 3; k++)
                add("host-" + (3 * i + k) % 200, new Sample(now, i % 70, "/path/" + i + "/" + k), now - span);
        });
    }
}
