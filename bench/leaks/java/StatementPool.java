import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/** Leaks to an OutOfMemoryError: a pool of connections; a query that fails does not close its statement. */
public class StatementPool {
    static final class Statement {
        final String sql;
        final Map<String, Integer> columns = new HashMap<>(); // LEAK
        final char[] row = new char[500]; // LEAK

        Statement(String sql) {
            this.sql = sql;
            for (int i = 0; i < 6; i++) columns.put("column " + i, i); // LEAK
        }
    }

    static final class Connection {
        final Map<Integer, Statement> open = new LinkedHashMap<>();
        int next;

        int prepare(String sql) {
            open.put(next, new Statement(sql)); // LEAK
            return next++;
        }
    }

    static final ArrayDeque<Connection> pool = new ArrayDeque<>();

    static void query(int i) {
        Connection c = pool.poll();
        try {
            int s = c.prepare("select * from orders where customer = " + i); // LEAK
            if (i % 7 == 0) throw new IllegalStateException("time-out");
            c.open.remove(s);
        } catch (IllegalStateException e) {
            // the caller tries again later
        } finally {
            pool.add(c);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 8; i++) pool.add(new Connection());
        Work.until(args, 600, i -> {
            for (int k = 0; k < 3; k++) query(3 * i + k); // LEAK
        });
    }
}
