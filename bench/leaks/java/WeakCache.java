import java.util.ArrayDeque;
import java.util.WeakHashMap;

/** No leak: objects under weak references, of which the newest two thousand are used. */
public class WeakCache {
    public static void main(String[] args) throws Exception {
        WeakHashMap<Object, String> names = new WeakHashMap<>();
        ArrayDeque<Object> used = new ArrayDeque<>();
        Work.until(args, 800, i -> {
            Object o = new int[300];
            names.put(o, "object");
            used.add(o);
            if (used.size() > 2000) used.poll();
        });
    }
}
