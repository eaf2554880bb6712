import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;

/** Leaks: a cache of 3000 documents is bounded, but there is a lock for each document that was ever asked for. */
public class KeyLocks {
    static final Map<String, ReentrantLock> locks = new ConcurrentHashMap<>();
    static final Map<String, long[]> cache = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, long[]> e) { return size() > 3000; }
    };

    static long[] document(String key) {
        ReentrantLock lock = locks.computeIfAbsent(key, k -> new ReentrantLock()); // LEAK
        lock.lock();
        try {
            return cache.computeIfAbsent(key, k -> new long[60]);
        } finally {
            lock.unlock();
        }
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            for (int k = 0; k < 3; k++) document("document/" + (3L * i + k) * 31); // LEAK
            document("document/front page");
        });
    }
}
