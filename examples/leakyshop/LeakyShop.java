import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A shop that churns hard and leaks slowly: the audit trail of closed orders is never trimmed. Two workers serve
 * orders of one to eight items. Each keeps its newest 500 orders open, closes the older ones, and audits one closed
 * order in 3000.
 */
public class LeakyShop {
    static final class AuditEntry {
        final long order;
        final long at;
        final byte[] receipt;

        AuditEntry(long order, byte[] receipt) {
            this.order = order;
            this.at = System.nanoTime();
            this.receipt = receipt;
        }
    }

    static final Map<Long, AuditEntry> trail = new ConcurrentHashMap<>();

    static void audit(long order) {
        trail.put(order, new AuditEntry(order, new byte[2000])); // LEAK: nobody ever removes an entry
    }

    static Order order(long id, Random r) {
        List<Item> items = new ArrayList<>();
        for (int i = r.nextInt(8); i >= 0; i--) items.add(new Item("item-" + r.nextInt(1000), i, new byte[r.nextInt(400)]));
        Map<String, String> notes = new HashMap<>();
        for (int i = 0; i < 4; i++) notes.put("note" + i, "customer said " + r.nextLong());
        return new Order(id, "customer-" + id % 5000, items, notes);
    }

    static void serve(int worker) {
        Random r = new Random(worker);
        ArrayDeque<Order> open = new ArrayDeque<>();
        for (long id = worker; ; id += 2) {
            open.add(order(id, r));
            if (open.size() > 500) {
                Order done = open.poll();
                if (done.id % 3000 == 0) audit(done.id);
            }
            if (id % 4000 < 2) Thread.yield();
        }
    }

    public static void main(String[] args) throws Exception {
        Thread[] workers = new Thread[2];
        for (int i = 0; i < workers.length; i++) {
            int n = i;
            workers[i] = new Thread(() -> serve(n), "worker-" + n);
            workers[i].start();
        }
        for (Thread t : workers) t.join();
    }

    static final class Item {
        final String name;
        final int quantity;
        final byte[] picture;

        Item(String name, int quantity, byte[] picture) {
            this.name = name;
            this.quantity = quantity;
            this.picture = picture;
        }
    }

    static final class Order {
        final long id;
        final String customer;
        final List<Item> items;
        final Map<String, String> notes;

        Order(long id, String customer, List<Item> items, Map<String, String> notes) {
            this.id = id;
            this.customer = customer;
            this.items = items;
            this.notes = notes;
        }
    }
}
