import java.util.HashMap;
import java.util.Map;

/** No leak: maps that fill up and are replaced by new ones, one a sixth of the window. */
public class Rotates {
    static Map<Integer, byte[]> now = new HashMap<>(), before = new HashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double[] since = {0};
        Work.until(args, 500, i -> {
            if (Work.seconds() - since[0] > end / 6) {
                before = now;
                now = new HashMap<>();
                since[0] = Work.seconds();
            }
            now.put(i, new byte[1400]);
        });
    }
}
