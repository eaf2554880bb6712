/** Leaks: idle for a quarter of the window, then the heap fills up to its half; then all requests fail. */
public class FillsHalf {
    static final class Order {
        final String customer;
        final long[] items = new long[60]; // LEAK
        Order before;

        Order(String customer) { this.customer = customer; }
    }

    static Order newest;

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double rate = Runtime.getRuntime().maxMemory() / 600.0 / (end / 4);
        double[] owed = {0};
        Work.until(args, 400, i -> {
            if (Work.seconds() < end / 4) return;
            try {
                for (owed[0] += rate / 400; owed[0] >= 1; owed[0]--) {
                    Order o = new Order("customer " + i); // LEAK
                    o.before = newest;
                    newest = o;
                }
            } catch (OutOfMemoryError e) {
                owed[0] = 0;
                Thread.sleep(50);
            }
        });
    }
}
