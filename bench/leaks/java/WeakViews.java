import java.lang.ref.ReferenceQueue;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.concurrent.ConcurrentHashMap;

/** No leak: views of documents in a map with weak keys; a queue removes the views of those that are gone. */
public class WeakViews {
    static final class Key extends WeakReference<Object> {
        final int hash;

        Key(Object o, ReferenceQueue<Object> queue) {
            super(o, queue);
            hash = System.identityHashCode(o);
        }

        @Override
        public int hashCode() { return hash; }

        @Override
        public boolean equals(Object o) { return this == o || o instanceof Key k && get() != null && get() == k.get(); }
    }

    static final ConcurrentHashMap<Key, double[]> views = new ConcurrentHashMap<>();
    static final ReferenceQueue<Object> gone = new ReferenceQueue<>();
    static final ArrayDeque<Object> open = new ArrayDeque<>();

    static void look(Object document) {
        for (Object k = gone.poll(); k != null; k = gone.poll()) views.remove(k);
        views.computeIfAbsent(new Key(document, gone), k -> new double[40])[0]++;
    }

    public static void main(String[] args) throws Exception {
        int most = (int) (Double.parseDouble(args[0]) * 1200 / 4);
        Work.until(args, 600, i -> {
            for (int k = 0; k < 2; k++) {
                String document = "document " + i + " of " + k;
                open.add(document);
                look(document);
                if (open.size() > most) open.poll();
            }
        });
    }
}
