import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;

/** Leaks: pages leave the queue after four tenths of the window, but only every second one leaves the map. */
public class HalfEvicted {
    record Page(int number, double at, byte[] text) { }

    static final Map<Integer, Page> pages = new HashMap<>();
    static final ArrayDeque<Page> ages = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        double ttl = Double.parseDouble(args[0]) * 0.4;
        Work.until(args, 400, i -> {
            Page p = new Page(i, Work.seconds(), new byte[2000]); // LEAK
            pages.put(i, p); // LEAK
            ages.add(p);
            while (ages.peek().at() < Work.seconds() - ttl) {
                Page old = ages.poll();
                if (old.number() % 2 == 0) pages.remove(old.number());
            }
        });
    }
}
