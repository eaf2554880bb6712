import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/** Makes class loaders with a class each, then garbage. Arguments: loaders, MB of garbage. */
public class ManyLoaders {
    public static class Shape {
        int a;
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass("ManyLoaders$Shape", b, 0, b.length);
        }
    }

    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        byte[] code;
        try (InputStream in = ManyLoaders.class.getResourceAsStream("ManyLoaders$Shape.class")) {
            code = in.readAllBytes();
        }
        List<Class<?>> kept = new ArrayList<>();
        for (int i = Integer.parseInt(args[0]); i > 0; i--)
            kept.add(new Loader().define(code));
        for (int i = Integer.parseInt(args[1]) * 1000; i > 0; i--) sink = new byte[1000];
        System.out.println("done");
    }
}
