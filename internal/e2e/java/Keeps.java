import java.util.ArrayList;
import java.util.List;

/** Keeps: keeps N entries and some arrays, collects once, and then only waits for S seconds. */
public class Keeps {
    static final class Entry {
        final long at, of;

        Entry(long at) {
            this.at = at;
            this.of = -at;
        }
    }

    static final List<Object> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]);
        for (int i = 0; i < n; i++) {
            kept.add(new Entry(i));
            if (i % 10 == 0) kept.add(new byte[200]);
        }
        System.gc();
        Thread.sleep(1000L * Integer.parseInt(args[1]));
    }
}
