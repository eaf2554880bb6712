import java.util.HashMap;
import java.util.Map;

/** Leaks: sessions that end without being taken out of their map. Half of them are. */
public class SessionMap {
    static final class Key {
        final long a;
        final long b;

        Key(long a, long b) {
            this.a = a;
            this.b = b;
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof Key && ((Key) o).a == a && ((Key) o).b == b;
        }

        @Override
        public int hashCode() {
            return 31 * Long.hashCode(a) + Long.hashCode(b);
        }
    }

    static final class Session {
        final byte[] state;

        Session(int n) {
            state = new byte[n]; // LEAK
        }
    }

    static final Map<Key, Session> sessions = new HashMap<>();

    static void login(int i) {
        sessions.put(new Key(i, i * 31L), new Session(300 + i % 200));
        if (i % 2 == 0 && i >= 400) sessions.remove(new Key(i - 400, (i - 400) * 31L));
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 2000, SessionMap::login);
    }
}
