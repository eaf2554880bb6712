import java.util.concurrent.ConcurrentHashMap;

/** Leaks: every name that ever came in is interned, in the program's own table. */
public class Interning {
    static final ConcurrentHashMap<String, String> names = new ConcurrentHashMap<>();

    static String intern(int i) {
        String s = "customer/" + i + "/order/" + i * 7L + "/state"; // LEAK
        String old = names.putIfAbsent(s, s); // LEAK: its entry
        return old == null ? s : old;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 2000, i -> { intern(i); intern(i / 2); });
    }
}
