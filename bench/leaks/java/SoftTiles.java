import java.lang.ref.*;
import java.util.*;

/** No leak: a cache of soft references of a class of its own, with a queue that removes what was cleared. */
public class SoftTiles {
    static final class Entry extends SoftReference<byte[]> {
        final long key;

        Entry(long key, byte[] value, ReferenceQueue<byte[]> queue) { super(value, queue); this.key = key; }
    }

    static final Map<Long, Entry> entries = new HashMap<>();
    static final ReferenceQueue<byte[]> cleared = new ReferenceQueue<>();

    static byte[] tile(long key) {
        for (Object e; (e = cleared.poll()) != null; ) entries.remove(((Entry) e).key);
        Entry e = entries.get(key);
        byte[] tile = e == null ? null : e.get();
        if (tile == null) entries.put(key, new Entry(key, tile = new byte[9000], cleared));
        return tile;
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L, sum = 0;
        Random random = new Random(9);
        for (int n = 0; System.nanoTime() < end; n++) {
            for (int k = 0; k < 2; k++) sum += tile(random.nextInt(1 << 18)).length;
            for (int k = 0; k < 6; k++) sum += Long.toString(n, 2).repeat(100).length();
            Thread.sleep(6);
        }
        System.out.println(sum + " " + entries.size());
    }
}
