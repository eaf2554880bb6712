import java.io.InputStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;

/**
 * Two sites of one class at 1:9, a class that allocates and is unloaded, two classes of one name; then Steady's churn with the arguments given, so that
 * what came before has to survive rotations. Prints "unloaded" when the class is gone.
 */
public class Unloads {
    public static class Gen {
        public static Object make() {
            return new int[20_000]; // SITE gone
        }
    }

    static class First extends ClassLoader {
        First() {
            super(null);
        }

        Class<?> define(byte[] b) {
            return defineClass("Unloads$Gen", b, 0, b.length);
        }
    }

    static final class Second extends First {}

    static final class Box {}

    static volatile Object sink;
    static final List<Object> keep = new ArrayList<>();

    static Object few() {
        return new Box[2_000]; // SITE few
    }

    static Object many() {
        return new Box[2_000]; // SITE many
    }

    /** In a frame of its own: nothing of it may hold the class afterwards. */
    static WeakReference<Class<?>> gone(byte[] code) throws Exception {
        Class<?> k = new First().define(code);
        for (int i = 0; i < 40; i++) keep.add(k.getMethod("make").invoke(null));
        return new WeakReference<>(k);
    }

    public static void main(String[] a) throws Exception {
        byte[] code;
        try (InputStream in = Unloads.class.getResourceAsStream("Unloads$Gen.class")) {
            code = in.readAllBytes();
        }
        // The JVM made this thread's first draw before anybody could set the interval: 512 KiB on average.
        for (int i = 0; i < 256; i++) sink = new byte[1 << 16];
        for (int i = 0; i < 200; i++) keep.add(i % 10 == 0 ? few() : many());
        WeakReference<Class<?>> k = gone(code);
        for (int i = 0; k.get() != null; i++) {
            if (i == 50) throw new IllegalStateException("the class is not unloaded");
            System.gc();
        }
        System.out.println("unloaded");
        for (int i = 0; i < 7; i++) {
            keep.add(new First().define(code).getDeclaredConstructor().newInstance());
            if (i > 3) keep.add(new Second().define(code).getDeclaredConstructor().newInstance());
        }
        Steady.main(a);
        System.gc();
        System.out.println(keep.size());
        System.out.println("done");
    }
}
