import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/** Leaks: each redeployment leaves its class loader behind, with all that the plugin's statics hold. */
public class Loaders {
    public static class Plugin {
        static final byte[][] table = new byte[64][];

        public Plugin() {
            for (int i = 0; i < table.length; i++) table[i] = new byte[1000]; // LEAK
        }
    }

    static final class Loader extends ClassLoader {
        Loader() { super(Loaders.class.getClassLoader()); }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.equals("Loaders$Plugin")) return super.loadClass(name, resolve);
            try (InputStream in = Loaders.class.getResourceAsStream("Loaders$Plugin.class")) {
                byte[] b = in.readAllBytes();
                return defineClass(name, b, 0, b.length);
            } catch (java.io.IOException e) {
                throw new ClassNotFoundException(name, e);
            }
        }
    }

    static final List<Object> registry = new ArrayList<>();

    static void deploy() throws Exception {
        registry.add(new Loader().loadClass("Loaders$Plugin").getConstructor().newInstance());
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 2000, i -> { if (i % 400 == 0) deploy(); });
    }
}
