import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** No leak: a histogram for each of 9000 routes, made when a route is first taken. */
public class RouteStats {
    static final class Stats {
        final long[] buckets = new long[100];
        final List<String> hops = new ArrayList<>(List.of("a", "b"));
    }

    static final Stats[] stats = new Stats[9000];
    static final Random random = new Random(16);

    public static void main(String[] args) throws Exception {
        Work.until(args, 350, i -> {
            int route = random.nextInt(stats.length);
            if (stats[route] == null) stats[route] = new Stats();
            stats[route].buckets[i % 100]++;
        });
    }
}
