import java.util.HashMap;
import java.util.Map;

/** No leak: a cache of two maps; when the first is a quarter of the window old, it replaces the second. */
public class TwoHalves {
    static Map<String, byte[]> young = new HashMap<>(), old = new HashMap<>();
    static double since;

    public static void main(String[] args) throws Exception {
        double span = Double.parseDouble(args[0]) * 0.25;
        Work.until(args, 500, i -> {
            if (Work.seconds() - since > span) {
                old = young;
                young = new HashMap<>();
                since = Work.seconds();
            }
            young.put("page " + i, new byte[1500]);
        });
    }
}
