import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** Leaks: a registry of meters for each of 40 tenants; one tag of a meter is the number of the order. */
public class TenantMeters {
    record Id(String name, List<String> tags) { }

    static final class Meter {
        final LongAdder count = new LongAdder(); // LEAK
        final long[] buckets = new long[24]; // LEAK
    }

    static final class Registry {
        final Map<Id, Meter> meters = new ConcurrentHashMap<>();

        Meter timer(String name, String... tags) {
            return meters.computeIfAbsent(new Id(name, List.of(tags)), k -> new Meter()); // LEAK
        }
    }

    static final Map<String, Registry> tenants = new ConcurrentHashMap<>();

    static void record(int i) {
        Registry r = tenants.computeIfAbsent("tenant-" + i % 40, k -> new Registry());
        r.timer("http.requests", "method", "GET", "status", "" + (200 + i % 4)).count.increment();
        r.timer("orders.saved", "order", "order-" + i).count.increment(); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> record(i)); // LEAK
    }
}
