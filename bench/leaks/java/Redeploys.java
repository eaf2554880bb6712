import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Leaks: each deployment registers a driver with a registry of the server, which nothing takes out again. */
public class Redeploys {
    static final List<Runnable> registry = new ArrayList<>();

    public static class App implements Runnable {
        static final Map<Integer, String> texts = new HashMap<>();

        public App() {
            for (int i = 0; i < 3000; i++) texts.put(i, "text " + i + " of this version"); // LEAK
            registered(this);
        }

        @Override
        public void run() { }
    }

    public static void registered(Runnable r) { registry.add(r); }

    static final class WarLoader extends ClassLoader {
        WarLoader() { super(Redeploys.class.getClassLoader()); }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Redeploys$App")) return super.loadClass(name, resolve);
            try (InputStream in = Redeploys.class.getResourceAsStream("Redeploys$App.class")) {
                byte[] b = in.readAllBytes();
                return defineClass(name, b, 0, b.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    static void deploy() throws Exception {
        new WarLoader().loadClass("Redeploys$App").getDeclaredConstructor().newInstance(); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 300, i -> {
            if (i % 200 == 0) deploy(); // LEAK
        });
        System.out.println("kept " + registry.size() * 3000L * 130);
    }
}
