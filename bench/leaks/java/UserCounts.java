import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: counters of 12000 users; some users come far more often than others. */
public class UserCounts {
    static final Map<String, Map<String, long[]>> counts = new ConcurrentHashMap<>();
    static final String[] kinds = {"read", "write", "list"};
    static final Random random = new Random(15);

    public static void main(String[] args) throws Exception {
        Work.until(args, 600, i -> {
            int user = (int) (12000 * Math.pow(random.nextDouble(), 1.6));
            counts.computeIfAbsent("user-" + user, k -> new HashMap<>())
                .computeIfAbsent(kinds[i % 3], k -> new long[8])[i % 8]++;
        });
    }
}
