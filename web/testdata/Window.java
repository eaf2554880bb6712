import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * What the viewer's tests look at: a leak, churn, a burst that goes again, full collections, and a class whose name
 * looks like HTML.
 * Argument: the number of orders.
 */
public class Window {
    static final List<Entry> trail = new ArrayList<>();
    static final List<Object> kept = new ArrayList<>();

    static void audit(long order) {
        trail.add(new Entry(order, new byte[400])); // LEAK
    }

    static Order order(long id, Random r) {
        List<byte[]> lines = new ArrayList<>();
        for (int i = r.nextInt(6); i >= 0; i--) lines.add(new byte[r.nextInt(300)]);
        return new Order(id, "customer-" + id % 500, lines);
    }

    /** A class of this name without any member but a constructor. */
    static Class<?> named(String name) throws Exception {
        ByteArrayOutputStream b = new ByteArrayOutputStream();
        DataOutputStream o = new DataOutputStream(b);
        o.writeInt(0xCAFEBABE);
        o.writeInt(55); // Java 11
        o.writeShort(9);
        for (String s : new String[] {name, "java/lang/Object", "<init>", "()V", "Code"}) {
            o.writeByte(1);
            o.writeUTF(s);
        }
        o.writeByte(7); o.writeShort(1); // 6: this
        o.writeByte(7); o.writeShort(2); // 7: super
        o.writeByte(12); o.writeShort(3); o.writeShort(4); // 8: <init>()V
        o.writeShort(1); // public
        o.writeShort(6);
        o.writeShort(7);
        o.writeShort(0);
        o.writeShort(0);
        o.writeShort(0);
        o.writeShort(0);
        byte[] bytes = b.toByteArray();
        return new ClassLoader() {
            Class<?> define() { return defineClass(null, bytes, 0, bytes.length); }
        }.define();
    }

    public static void main(String[] args) throws Exception {
        Class<?> hostile = named("<img src=x onerror=alert(1)>");
        for (int i = 0; i < 300; i++) kept.add(java.lang.reflect.Array.newInstance(hostile, 20));
        Thread t = new Thread(() -> { for (int i = 0; i < 50; i++) kept.add(new long[64]); }, "<script>alert(1)</script>");
        t.start();
        t.join();
        Random r = new Random(1);
        ArrayDeque<Order> open = new ArrayDeque<>();
        List<long[]> burst = new ArrayList<>();
        int n = Integer.parseInt(args[0]);
        for (int id = 0; id < n; id++) {
            open.add(order(id, r));
            if (open.size() > 300) open.poll();
            if (id % 200 == 0) audit(id);
            if (id > n / 3 && id < n / 3 + 2000) burst.add(new long[60]);
            if (id == n / 2) burst = new ArrayList<>();
            if (id % (n / 3) == n / 4) System.gc();
            if (args.length > 1 && id % 2000 == 0) Thread.sleep(Integer.parseInt(args[1]));
        }
    }

    static final class Order {
        final long id;
        final String customer;
        final List<byte[]> lines;

        Order(long id, String customer, List<byte[]> lines) {
            this.id = id;
            this.customer = customer;
            this.lines = lines;
        }
    }

    static final class Entry {
        final long order;
        final byte[] receipt;

        Entry(long order, byte[] receipt) {
            this.order = order;
            this.receipt = receipt;
        }
    }
}
