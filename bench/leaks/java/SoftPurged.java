import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.util.Random;
import java.util.TreeMap;

/** No leak: parsed rules, softly held in a tree by their text; what was cleared is removed by a queue. */
public class SoftPurged {
    static final class Rule extends SoftReference<long[]> {
        final String text;

        Rule(String text) { super(new long[220], cleared); this.text = text; }
    }

    static final ReferenceQueue<long[]> cleared = new ReferenceQueue<>();
    static final TreeMap<String, Rule> rules = new TreeMap<>();
    static final Random random = new Random(13);

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            for (Object r; (r = cleared.poll()) != null; ) rules.remove(((Rule) r).text);
            String text = "rule " + random.nextInt(22000);
            Rule r = rules.get(text);
            if (r == null || r.get() == null) rules.put(text, new Rule(text));
        });
    }
}
