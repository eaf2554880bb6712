import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Leaks: shopping carts that nobody checks out stay in their map until the heap is full. Its second argument says what
 * then happens: throw (nobody catches it), catch (the program goes on), kill (by SIGKILL, soon after).
 */
public class Carts {
    static final class Item {
        final String name;
        final int[] prices = new int[30]; // LEAK

        Item(String name) { this.name = name; }
    }

    static final Map<String, List<Item>> carts = new ConcurrentHashMap<>();

    static void put(int customer) {
        List<Item> cart = carts.computeIfAbsent("customer-" + customer, c -> new ArrayList<>()); // LEAK
        for (int k = 0; k < 8; k++) cart.add(new Item("article " + customer + "/" + k)); // LEAK
    }

    public static void main(String[] args) throws Exception {
        String how = args[1];
        double end = Double.parseDouble(args[0]);
        double mib = Runtime.getRuntime().maxMemory() / 1048576.0;
        double per = mib * 1048576 / 2300 / (end * 0.6); // full after six tenths of the time
        int n = 0;
        long errors = 0;
        while (Work.seconds() < end) {
            Work.request();
            try {
                while (n < Work.seconds() * per) put(n++);
            } catch (OutOfMemoryError e) {
                if (how.equals("throw")) throw e;
                if (how.equals("kill")) new ProcessBuilder("kill", "-9", "" + ProcessHandle.current().pid()).start();
                errors++;
                Thread.sleep(300);
            }
            Thread.sleep(3);
        }
        System.out.println("errors " + errors);
    }
}
