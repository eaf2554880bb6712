import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/** Leaks: scripts are compiled, each by a class loader of its own, and kept by their text, which has a date in it. */
public class ScriptCache {
    static final Map<String, IntUnaryOperator> compiled = new HashMap<>();

    public static class Script implements IntUnaryOperator {
        static final byte[] constants = new byte[12000]; // LEAK

        @Override
        public int applyAsInt(int x) { return x + constants.length; }
    }

    static final class ScriptLoader extends ClassLoader {
        ScriptLoader() { super(ScriptCache.class.getClassLoader()); }

        Class<?> define() throws Exception {
            try (InputStream in = ScriptCache.class.getResourceAsStream("ScriptCache$Script.class")) {
                byte[] b = in.readAllBytes();
                return defineClass("ScriptCache$Script", b, 0, b.length); // LEAK
            }
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            return name.equals("ScriptCache$Script") ? findLoadedClass(name) : super.loadClass(name, resolve);
        }
    }

    static IntUnaryOperator of(String text) throws Exception {
        IntUnaryOperator s = compiled.get(text);
        if (s == null) {
            s = (IntUnaryOperator) new ScriptLoader().define().getDeclaredConstructor().newInstance(); // LEAK
            compiled.put(text, s); // LEAK
        }
        return s;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 300, i -> {
            if (i % 10 == 0) of("return price * 1.19 /* asked at " + i + " */").applyAsInt(i); // LEAK
        });
    }
}
