import java.util.concurrent.ConcurrentHashMap;

/** No leak: a cache whose entries expire after a fifth of the window. */
public class Ttl {
    static final class Entry {
        final double made = Work.seconds();
        final byte[] value = new byte[1500];
    }

    static final ConcurrentHashMap<Integer, Entry> map = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Work.until(args, 600, i -> {
            map.put(i, new Entry());
            if (i % 600 == 0) map.values().removeIf(e -> e.made < Work.seconds() - end / 5);
        });
    }
}
