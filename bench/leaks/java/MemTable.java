import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** No leak: a store writes its sorted table out seven times in the window as one block, and merges four blocks to one. */
public class MemTable {
    static TreeMap<String, byte[]> table = new TreeMap<>();
    static List<byte[]> blocks = new ArrayList<>();

    static void flush() {
        int n = 0;
        for (Map.Entry<String, byte[]> e : table.entrySet()) n += e.getKey().length() + e.getValue().length;
        blocks.add(new byte[n / 8]);
        table = new TreeMap<>();
        if (blocks.size() < 4) return;
        blocks = new ArrayList<>(List.of(new byte[n / 8])); // newer values replace the older ones
    }

    public static void main(String[] args) throws Exception {
        int most = (int) (Double.parseDouble(args[0]) * 1500 / 7);
        Work.until(args, 500, i -> {
            for (int k = 0; k < 3; k++) table.put("key/" + (3L * i + k) * 2654435761L % 1000003, new byte[150]);
            if (table.size() >= most) flush();
        });
    }
}
