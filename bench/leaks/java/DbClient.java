import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Leaks: a client of a database that never closes its statements: the connection keeps them. Its second argument
 * says how it ends: exit, halt or error.
 */
public class DbClient {
    static final class Statement {
        final Connection of;
        final String sql;
        final byte[] plan;
        final List<Object[]> rows = new ArrayList<>();

        Statement(Connection of, String sql) {
            this.of = of;
            this.sql = sql;
            plan = new byte[1200]; // LEAK
            of.open.put(this, sql); // LEAK
        }

        void query(int n) {
            for (int i = 0; i < n; i++) rows.add(new Object[] {i, "row " + i}); // LEAK
        }

        void close() { of.open.remove(this); }
    }

    static final class Connection {
        final Map<Statement, String> open = new HashMap<>();

        Statement prepare(String sql) { return new Statement(this, sql); } // LEAK
    }

    public static void main(String[] args) throws Exception {
        Connection c = new Connection();
        double end = Double.parseDouble(args[0]);
        String how = args.length > 1 ? args[1] : "exit";
        int per = how.equals("error") ? 2500 : 250;
        Work.until(args, per, i -> {
            Statement s = c.prepare("select * from t where id = " + i); // LEAK
            s.query(how.equals("error") ? 20 : 5);
            if (Work.seconds() > end - 1 && how.equals("halt")) Runtime.getRuntime().halt(3);
        });
    }
}
