import java.util.*;

/** Leaks: layouts in a WeakHashMap by document; a layout is an inner class of its document, so no document dies. */
public class Layouts {
    static final class Document {
        final String text;

        Document(int n) { text = "document " + n + " with some text"; } // LEAK

        final class Layout {
            final float[] widths = new float[120]; // LEAK

            float width() { return widths[0] + text.length(); }
        }
    }

    static final Map<Document, Document.Layout> layouts = Collections.synchronizedMap(new WeakHashMap<>());
    static float total;

    static void show(Document d) {
        total += layouts.computeIfAbsent(d, k -> k.new Layout()).width(); // LEAK
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        Thread[] workers = new Thread[3];
        for (int w = 0; w < workers.length; w++) {
            workers[w] = new Thread(() -> work(end), "renderer-" + w);
            workers[w].start();
        }
        for (Thread t : workers) t.join();
    }

    static void work(long end) {
        for (int n = 0; System.nanoTime() < end; n++) {
            for (int k = 0; k < 4; k++) show(new Document(n)); // LEAK
            List<byte[]> tiles = new LinkedList<>();
            for (int k = 0; k < 12; k++) tiles.add(new byte[1000 + k]);
            total += tiles.size();
            try {
                Thread.sleep(7);
            } catch (InterruptedException e) {
                return;
            }
        }
    }
}
