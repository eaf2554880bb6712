import java.util.*;

/** Holds objects of several classes in a random order: 2.5 references an object. As Held.java. */
public class Mixed {
    static class Order {
        Object customer, lines;
        long number;
        Order before;
    }

    static class Reply extends Order {
        Object cause;
        int kind;
        Map<Object, Object> data = new HashMap<>();
    }

    static class Customer {
        Object contact;
    }

    static class Contact {
        int number;
    }

    static final List<Object> ALL = new ArrayList<>();

    public static void main(String[] a) throws Exception {
        Random random = new Random(1);
        Order before = null;
        for (int i = 0; i < Integer.parseInt(a[0]) / 7; i++) { // of seven objects each, on average
            Order o = random.nextInt(3) == 0 ? new Reply() : new Order();
            Contact contact = new Contact();
            Customer customer = new Customer();
            customer.contact = contact;
            Object[] lines = new Object[random.nextInt(5)];
            for (int k = 0; k < lines.length; k++)
                lines[k] = ALL.isEmpty() ? contact : ALL.get(random.nextInt(ALL.size()));
            o.customer = customer;
            o.lines = lines;
            o.before = before;
            before = random.nextInt(50) == 0 ? null : o;
            if (o instanceof Reply) {
                ((Reply) o).cause = contact;
                ((Reply) o).data.put(contact, customer);
            }
            ALL.add(o);
            ALL.add(String.valueOf(i));
        }
        System.gc();
        System.out.println("ready");
        while (System.in.read() >= 0) { }
    }
}
