import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** No leak: a configuration that is read again eleven times in the window; the old one is dropped. */
public class Reloads {
    static volatile Map<String, List<String>> config = new HashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        int[] no = {0};
        Work.until(args, 500, i -> {
            if (Work.seconds() < no[0] * end / 11) return;
            no[0]++;
            Map<String, List<String>> next = new HashMap<>();
            for (int k = 0; k < 4000; k++) {
                List<String> values = new ArrayList<>();
                for (int n = 0; n < 5; n++) values.add("value " + n + " of " + k + " in " + no[0]);
                next.put("key " + k, values);
            }
            config = next;
        });
    }
}
