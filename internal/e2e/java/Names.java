import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * Allocates through a proxy, a lambda, reflection and native methods, of the JVM and of a library, and below one that calls back. The argument says how
 * many others of the generated classes there are first, so that their numbers differ.
 */
public class Names {
    interface Maker { Object make(int n); }

    interface Other { Object call(); }

    static volatile Object sink;
    static final List<Object> keep = new ArrayList<>();

    /** A loader that native code calls, and that has no class. */
    static class Nothing extends ClassLoader {
        static final ClassNotFoundException none = new ClassNotFoundException();

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            keep.add(new double[20]);
            throw none;
        }
    }

    static Object viaReflection(int n) { return new short[n]; }

    public static void main(String[] args) throws Exception {
        ClassLoader loader = Names.class.getClassLoader();
        // The JVM made this thread's first draw before anybody could set the interval: 512 KiB on average.
        for (int i = 0; i < 256; i++) sink = new byte[1 << 16];
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            int k = i;
            Proxy.newProxyInstance(loader, new Class<?>[] {Runnable.class, i % 2 == 0 ? Comparable.class : Other.class}, (p, m, x) -> k);
            Supplier<Integer> s = () -> k;
            s.get();
        }
        Maker proxy = (Maker) Proxy.newProxyInstance(loader, new Class<?>[] {Maker.class}, (p, m, x) -> new long[(Integer) x[0]]);
        Function<Integer, Object> lambda = n -> new int[n];
        Method reflected = Names.class.getDeclaredMethod("viaReflection", int.class);
        File folder = new File(args[1]);
        Nothing nothing = new Nothing();
        for (int i = 0; i < 500; i++) {
            keep.add(proxy.make(100));
            keep.add(lambda.apply(100));
            keep.add(reflected.invoke(null, 100));
            keep.add(List.of(1, 2).stream().map(x -> new char[200]).toArray());
            keep.add(new float[10].clone());
            keep.add(Array.newInstance(boolean.class, 100));
            keep.add(new Throwable());
            keep.add(folder.list());
            try {
                Class.forName("none" + i, false, nothing);
            } catch (ClassNotFoundException e) {
                sink = e;
            }
        }
        System.gc();
        System.out.println("done");
    }
}
