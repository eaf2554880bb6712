import java.util.HashMap;
import java.util.Map;

/** Leaks: as Callbacks, full after nine tenths of the window, and at once before the end. */
public class FillsLate {
    static final Map<String, byte[]> seen = new HashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double rate = Runtime.getRuntime().maxMemory() / 1150.0 / (end * 0.9);
        double[] owed = {0};
        int[] n = {0};
        Work.until(args, 500, i -> {
            try {
                for (owed[0] += rate / 500; owed[0] >= 1; owed[0]--)
                    seen.put("request " + n[0]++, new byte[1000]); // LEAK
            } catch (OutOfMemoryError e) {
                owed[0] = 0;
                Thread.sleep(50);
            }
        });
    }
}
