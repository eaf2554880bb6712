import java.util.Map;
import java.util.TreeMap;

/** No leak: an index is built anew five times in the window, bit by bit, and takes the place of the old one. */
public class IndexSwap {
    static volatile Map<String, Long> index = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        double part = Double.parseDouble(args[0]) / 5;
        Map<String, Long>[] next = new Map[] {new TreeMap<String, Long>()};
        int[] round = {0};
        Work.until(args, 300, i -> {
            for (int k = 0; k < 20; k++) next[0].put("key " + i + "/" + k, (long) i * k);
            if (Work.seconds() / part > round[0] + 1) {
                round[0]++;
                index = next[0];
                next[0] = new TreeMap<>();
            }
            index.get("key " + i + "/3");
        });
    }
}
