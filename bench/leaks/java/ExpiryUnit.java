import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** Leaks: sessions expire after 900 seconds that were meant to be milliseconds: the sweeper finds none to remove. */
public class ExpiryUnit {
    static final class Session {
        final long since = System.currentTimeMillis();
        final Map<String, Object> attributes = new HashMap<>(); // LEAK

        Session(int i) {
            attributes.put("user", "user " + i); // LEAK
            attributes.put("basket", new long[40]); // LEAK
            attributes.put("locale", "en"); // LEAK
        }
    }

    static final Map<UUID, Session> sessions = new ConcurrentHashMap<>();

    static void sweep() {
        long now = System.currentTimeMillis();
        sessions.values().removeIf(s -> now - s.since > 900_000);
    }

    public static void main(String[] args) throws Exception {
        Thread t = new Thread(() -> {
            try {
                for (;; Thread.sleep(1000)) sweep();
            } catch (InterruptedException e) {
                return;
            }
        }, "sweeper");
        t.setDaemon(true);
        t.start();
        Work.until(args, 900, i -> {
            if (i % 2 == 0) sessions.put(UUID.nameUUIDFromBytes(("s" + i).getBytes()), new Session(i)); // LEAK
        });
        System.out.println("kept " + sessions.size() * 850L);
    }
}
