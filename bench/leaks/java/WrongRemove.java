import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.IntConsumer;

/** Leaks: a dialog takes its listener out of the model again, but by another lambda, so that the list keeps it. */
public class WrongRemove {
    static final CopyOnWriteArrayList<IntConsumer> listeners = new CopyOnWriteArrayList<>();

    static final class Dialog {
        final byte[] pixels = new byte[16000]; // LEAK
        int seen;

        void open() { listeners.add(this::changed); } // LEAK

        void close() { listeners.remove((IntConsumer) this::changed); }

        void changed(int what) { seen = what; }
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 250, i -> {
            if (i % 5 != 0) return;
            Dialog d = new Dialog(); // LEAK
            d.open(); // LEAK
            d.close();
            if (i % 100 == 0) listeners.forEach(l -> l.accept(3));
        });
        System.out.println("kept " + listeners.size() * 16060L);
    }
}
