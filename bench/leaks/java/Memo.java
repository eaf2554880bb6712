import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** No leak: results by article; there are 20000 articles, and half of them were asked for in 30 seconds. */
public class Memo {
    static final Map<Integer, double[]> prices = new HashMap<>();
    static final Random random = new Random(14);

    public static void main(String[] args) throws Exception {
        Work.until(args, 450, i -> {
            prices.computeIfAbsent(random.nextInt(20000), k -> new double[140]);
        });
    }
}
