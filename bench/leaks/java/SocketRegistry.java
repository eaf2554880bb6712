import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Leaks: sessions of a web socket in rooms and in a registry. They live for a fifteenth of the window. One in fifteen
 * ends without a close frame, and stays in the registry.
 */
public class SocketRegistry {
    static final class Session {
        final String id;
        final StringBuilder pending = new StringBuilder(400); // LEAK
        final int room;

        Session(String id, int room) {
            this.id = id;
            this.room = room;
        }
    }

    static final Map<String, Session> registry = new ConcurrentHashMap<>();
    static final Map<Integer, Set<Session>> rooms = new ConcurrentHashMap<>();
    static final TreeMap<Long, Session> ends = new TreeMap<>();
    static final Random random = new Random(3);

    static void open(int i, long until) {
        Session s = new Session("session-" + i, random.nextInt(300)); // LEAK
        s.pending.append("hello ").append(i);
        registry.put(s.id, s); // LEAK
        rooms.computeIfAbsent(s.room, k -> ConcurrentHashMap.newKeySet()).add(s); // LEAK
        ends.put(until + i % 1000, s);
    }

    static void close(Session s, boolean clean) {
        rooms.get(s.room).remove(s);
        if (clean) registry.remove(s.id);
    }

    public static void main(String[] args) throws Exception {
        double life = Double.parseDouble(args[0]) / 15;
        Work.until(args, 600, i -> {
            long now = System.nanoTime();
            for (int k = 0; k < 4; k++) open(4 * i + k, now + (long) (random.nextDouble() * 2 * life * 1e9)); // LEAK
            while (!ends.isEmpty() && ends.firstKey() < now) close(ends.pollFirstEntry().getValue(),
                random.nextInt(15) != 0);
        });
    }
}
