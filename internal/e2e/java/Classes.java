import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;

/** Loads and drops classes: each round a loader of its own, a class with instances, a proxy, a lambda. Arguments: rounds, loaders kept. */
public class Classes {
    public static class Victim {
        public int a;
        public long b;
        public Object c;
        public int[] d = new int[3];
    }

    static final class Loader extends ClassLoader {
        Loader() {
            super(null);
        }

        Class<?> define(byte[] b) {
            return defineClass("Classes$Victim", b, 0, b.length);
        }
    }

    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        byte[] code;
        try (InputStream in = Classes.class.getResourceAsStream("Classes$Victim.class")) {
            code = in.readAllBytes();
        }
        int rounds = Integer.parseInt(a[0]), keep = Integer.parseInt(a[1]);
        ArrayDeque<Object[]> kept = new ArrayDeque<>();
        for (int i = 0; i < rounds; i++) {
            Class<?> k = new Loader().define(code);
            Object[] own = new Object[12];
            for (int j = 0; j < 10; j++) own[j] = k.getDeclaredConstructor().newInstance();
            own[10] = Proxy.newProxyInstance(new ClassLoader(Classes.class.getClassLoader()) {}, new Class<?>[] {Runnable.class}, (x, m, y) -> null);
            int n = i;
            own[11] = (Runnable) () -> sink = n;
            kept.add(own);
            if (kept.size() > keep) kept.poll();
            for (int j = 0; j < 100; j++) sink = new byte[500];
        }
        System.out.println("done");
    }
}
