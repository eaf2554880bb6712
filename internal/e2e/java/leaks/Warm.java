import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** No leak: tables that are loaded in the first quarter and kept. */
public class Warm {
    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        Map<String, List<byte[]>> tables = new HashMap<>();
        Work.until(args, 2000, i -> {
            if (Work.seconds() < end / 4) tables.computeIfAbsent("table " + i % 50, k -> new ArrayList<>()).add(new byte[1200]);
        });
        System.out.println(tables.size());
        System.out.println("done");
    }
}
