import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** No leak: connections with caches of two hundred prepared statements each, which fill up as statements differ. */
public class ConnCaches {
    static final class Connection {
        final byte[] buffer = new byte[32768];
        final Map<String, char[]> prepared = new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, char[]> e) { return size() > 200; }
        };

        void query(String sql) { prepared.computeIfAbsent(sql, s -> new char[700]); }
    }

    public static void main(String[] args) throws Exception {
        List<Connection> pool = new ArrayList<>();
        Random random = new Random(8);
        Work.until(args, 400, i -> {
            if (pool.size() < 30 && i % 40 == 0) pool.add(new Connection());
            for (int k = 0; k < 3; k++)
                pool.get(random.nextInt(pool.size())).query("select " + random.nextInt(4000) + " from t");
        });
    }
}
