import java.util.ArrayList;
import java.util.List;

/** Leaks: the heap is full after a tenth of the window, and the program goes on with errors. */
public class FillsTenth {
    static final List<long[]> orders = new ArrayList<>();

    static void order() {
        orders.add(new long[120]); // LEAK
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double rate = Runtime.getRuntime().maxMemory() / 980.0 / (end / 10) / 300;
        double[] owed = {0};
        Work.until(args, 300, i -> {
            try {
                for (owed[0] += rate; owed[0] >= 1; owed[0]--) order();
            } catch (OutOfMemoryError e) {
                owed[0] = 0;
                Thread.sleep(100);
            }
        });
    }
}
