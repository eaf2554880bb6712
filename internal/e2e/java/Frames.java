import java.io.InputStream;
import java.lang.reflect.Method;
import java.util.function.Supplier;

/**
 * Allocates from stacks of all kinds for the given number of rounds: interpreted, compiled, inlined, reflected, native; of code that is deoptimised when a
 * class comes that it did not count on; and of classes that are unloaded and followed by others of the same form.
 */
public class Frames {
    public static class A implements Supplier<Object> {
        public Object get() {
            return new byte[2000];
        }
    }

    public static class B implements Supplier<Object> {
        public Object get() {
            return new short[1000];
        }
    }

    public static class C implements Supplier<Object> {
        public Object get() {
            return new char[1000];
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass(null, b, 0, b.length);
        }
    }

    static volatile Object sink;

    static Object inner(Supplier<Object> s, int depth) {
        return depth == 0 ? s.get() : inner(s, depth - 1);
    }

    static int churn(Supplier<Object> s, int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sink = inner(s, i % 5);
            sink = new int[100].clone();
            sum += sink.hashCode();
        }
        return sum;
    }

    public static void main(String[] a) throws Exception {
        byte[][] code = new byte[3][];
        for (int i = 0; i < code.length; i++)
            try (InputStream in = Frames.class.getResourceAsStream("Frames$" + "ABC".charAt(i) + ".class")) {
                code[i] = in.readAllBytes();
            }
        Method churn = Frames.class.getDeclaredMethod("churn", Supplier.class, int.class);
        for (int round = 0; round < Integer.parseInt(a[0]); round++) {
            for (int i = 0; i < 12; i++) {
                @SuppressWarnings("unchecked")
                Supplier<Object> s = (Supplier<Object>) new Loader().define(code[(round + i) % 3]).getDeclaredConstructor().newInstance();
                churn(s, 150); // stays interpreted where it is new
                churn.invoke(null, s, 50);
            }
            Supplier<Object> lambda = () -> new long[250];
            churn(lambda, 3000);
            if (round % 4 == 3) System.gc(); // unloads
        }
    }
}
