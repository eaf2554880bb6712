import java.lang.ref.WeakReference;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: one weak reference for each of 18000 customers' names, which stay; what they lead to dies soon. */
public class WeakNames {
    static final Map<String, WeakReference<int[]>> offers = new ConcurrentHashMap<>();
    static final Random random = new Random(12);

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            String name = "customer number " + random.nextInt(18000) + " of the northern region";
            WeakReference<int[]> w = offers.get(name);
            if (w == null || w.get() == null) offers.put(name, new WeakReference<>(new int[60]));
        });
    }
}
