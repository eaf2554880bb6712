import java.io.InputStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.IntUnaryOperator;

/** No leak: scripts are compiled, each by a class loader of its own; the newest 300 are kept. */
public class ScriptLru {
    static final Map<String, IntUnaryOperator> compiled = new LinkedHashMap<>(16, 0.75f, true) {
        @Override
        protected boolean removeEldestEntry(Map.Entry<String, IntUnaryOperator> e) { return size() > 300; }
    };

    public static class Script implements IntUnaryOperator {
        static final byte[] constants = new byte[12000];

        @Override
        public int applyAsInt(int x) { return x + constants.length; }
    }

    static final class ScriptLoader extends ClassLoader {
        ScriptLoader() { super(ScriptLru.class.getClassLoader()); }

        Class<?> define() throws Exception {
            try (InputStream in = ScriptLru.class.getResourceAsStream("ScriptLru$Script.class")) {
                byte[] b = in.readAllBytes();
                return defineClass("ScriptLru$Script", b, 0, b.length);
            }
        }
    }

    static IntUnaryOperator of(String text) throws Exception {
        IntUnaryOperator s = compiled.get(text);
        if (s == null) {
            s = (IntUnaryOperator) new ScriptLoader().define().getDeclaredConstructor().newInstance();
            compiled.put(text, s);
        }
        return s;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 300, i -> {
            if (i % 10 == 0) of("return price * 1.19 /* asked at " + i + " */").applyAsInt(i);
        });
    }
}
