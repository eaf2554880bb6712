import java.lang.ref.WeakReference;
import java.util.concurrent.*;

/** Leaks: images die, but their weak references and names stay in the map. */
public class Shells {
    static final ConcurrentMap<String, WeakReference<int[]>> images = new ConcurrentSkipListMap<>();
    static long sum;

    static int[] image(String name) {
        WeakReference<int[]> r = images.get(name);
        int[] image = r == null ? null : r.get();
        if (image == null) {
            image = new int[300];
            images.put(name, new WeakReference<>(image)); // LEAK
        }
        return image;
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        for (int n = 0; System.nanoTime() < end; n++) {
            for (int k = 0; k < 25; k++) sum += image("/images/of/product/number/" + n + "/variant/" + k)[0]; // LEAK
            Thread.sleep(6);
        }
    }
}
