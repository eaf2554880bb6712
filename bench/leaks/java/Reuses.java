import java.util.HashMap;
import java.util.Map;

/** No leak: builders that are used again and hold their largest text, and a bounded vocabulary that is interned. */
public class Reuses {
    public static void main(String[] args) throws Exception {
        StringBuilder[] builders = new StringBuilder[64];
        Map<String, Integer> words = new HashMap<>();
        Work.until(args, 600, i -> {
            int k = i % builders.length;
            if (builders[k] == null) builders[k] = new StringBuilder();
            builders[k].setLength(0);
            for (int n = 0; n < 20 + i % 300; n++) builders[k].append("line ").append(n).append('\n');
            words.merge(("word " + i * 7919 % 5000).intern(), 1, Integer::sum);
        });
    }
}
