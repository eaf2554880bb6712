import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Leaks: results by article and time of the request: none is ever found again. */
public class MemoTime {
    record Key(int article, long at) { }

    static final Map<Key, double[]> prices = new HashMap<>();
    static final Random random = new Random(17);

    public static void main(String[] args) throws Exception {
        Work.until(args, 450, i -> {
            Key k = new Key(random.nextInt(20000), System.nanoTime()); // LEAK
            prices.computeIfAbsent(k, x -> new double[140]); // LEAK
        });
    }
}
