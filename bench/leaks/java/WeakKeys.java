import java.util.WeakHashMap;

/** Leaks: a WeakHashMap whose values hold their keys. */
public class WeakKeys {
    static final WeakHashMap<Object, Object[]> map = new WeakHashMap<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            Object key = new byte[600]; // LEAK
            map.put(key, new Object[] {key, "value " + i}); // LEAK
        });
    }
}
