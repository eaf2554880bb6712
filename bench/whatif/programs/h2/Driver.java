import java.sql.*;

/** An H2 database in memory: N rounds of orders that are inserted, joined and summed; those of old rounds are deleted. */
public class Driver {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime(), rows = 0;
        try (Connection c = new org.h2.Driver().connect("jdbc:h2:mem:x", new java.util.Properties()); Statement s = c.createStatement()) {
            s.execute("create table item(id int primary key, name varchar(40), price decimal(10,2))");
            s.execute("create table sold(id bigint auto_increment primary key, round int, item int, pieces int, note varchar(80))");
            s.execute("create index by_round on sold(round)");
            try (PreparedStatement p = c.prepareStatement("insert into item values(?,?,?)")) {
                for (int i = 0; i < 2000; i++) {
                    p.setInt(1, i); p.setString(2, "item number " + i); p.setBigDecimal(3, java.math.BigDecimal.valueOf(100 + i, 2));
                    p.executeUpdate();
                }
            }
            for (int r = 0; r < n; r++) {
                try (PreparedStatement p = c.prepareStatement("insert into sold(round,item,pieces,note) values(?,?,?,?)")) {
                    for (int i = 0; i < 2000; i++) {
                        p.setInt(1, r); p.setInt(2, (i * 37 + r) % 2000); p.setInt(3, i % 7); p.setString(4, "order " + i + " of round " + r);
                        p.addBatch();
                    }
                    p.executeBatch();
                }
                try (ResultSet q = s.executeQuery("select i.name, sum(i.price * o.pieces) t, count(*) from sold o join item i on i.id = o.item "
                        + "where o.round >= " + (r - 2) + " group by i.name order by t desc")) {
                    while (q.next()) rows++;
                }
                s.executeUpdate("delete from sold where round < " + (r - 5));
            }
        }
        System.out.println("rows=" + rows);
        if (rows != 2000L * n) throw new AssertionError();
        System.out.println("WORKLOAD h2 n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
