import java.util.HashMap;
import java.util.Map;

/** Leaks: a cache whose keys have no equals and hashCode, so that nothing is ever found in it. */
public class BrokenKey {
    static final class Key {
        final int user;

        Key(int user) { this.user = user; }
    }

    static final Map<Key, long[]> scores = new HashMap<>();

    static long[] of(int user) {
        return scores.computeIfAbsent(new Key(user), k -> new long[80]); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 900, i -> of(i % 200));
    }
}
