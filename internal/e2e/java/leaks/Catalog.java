import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** No leak: a catalog that is built anew eight times in the window, of about the same size. */
public class Catalog {
    static final class Item {
        final int id;
        final String name;
        final double[] prices;

        Item(int id, String name, double[] prices) {
            this.id = id;
            this.name = name;
            this.prices = prices;
        }
    }

    static volatile Map<Integer, Item> catalog = Map.of();

    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        Random r = new Random(2);
        int[] built = {0};
        Work.until(args, 500, i -> {
            if (Work.seconds() < built[0] * end / 8) return;
            built[0]++;
            Map<Integer, Item> next = new HashMap<>();
            for (int k = 15000 + r.nextInt(8000); k > 0; k--) next.put(k, new Item(k, "item " + k, new double[20]));
            catalog = next;
        });
    }
}
