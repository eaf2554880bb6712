import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Leaks: counters by address that nobody bounds: a node, a string and an array each. */
public class Metrics {
    static final Map<String, long[]> byUrl = new ConcurrentHashMap<>();

    static void record(int i) {
        byUrl.computeIfAbsent("/user/" + i + "/page/" + i % 7, u -> new long[24])[i % 24]++; // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 600, i -> record(i)); // LEAK
    }
}
