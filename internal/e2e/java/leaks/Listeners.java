import java.util.concurrent.CopyOnWriteArrayList;

/** Leaks: views register with a model and never leave it. */
public class Listeners {
    interface Listener { void changed(int what); }

    static final class Model {
        final CopyOnWriteArrayList<Listener> listeners = new CopyOnWriteArrayList<>();
    }

    static final class View {
        final int[] pixels;
        int last;

        View(Model m, int n) {
            pixels = new int[n]; // LEAK
            m.listeners.add(w -> last = w + pixels.length);
        }
    }

    public static void main(String[] args) throws Exception {
        Model m = new Model();
        Work.until(args, 2000, i -> { if (i % 25 == 0) new View(m, 500 + i % 1000); });
    }
}
