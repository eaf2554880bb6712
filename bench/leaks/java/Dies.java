import java.util.concurrent.ConcurrentHashMap;

/** Leaks until an OutOfMemoryError that nobody catches ends the program, after half of the window. */
public class Dies {
    static final ConcurrentHashMap<Integer, StringBuilder> texts = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double rate = Runtime.getRuntime().maxMemory() / 1700.0 / (end / 2);
        double[] owed = {0};
        int[] n = {0};
        Work.until(args, 500, i -> {
            for (owed[0] += rate / 500; owed[0] >= 1; owed[0]--)
                texts.put(n[0]++, new StringBuilder(1600)); // LEAK
        });
    }
}
