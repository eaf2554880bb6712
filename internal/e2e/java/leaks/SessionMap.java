import java.util.HashMap;
import java.util.Map;

/** Leaks: sessions that end without being taken out of their map. Half of them are. */
public class SessionMap {
    record Key(long a, long b) {}

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
