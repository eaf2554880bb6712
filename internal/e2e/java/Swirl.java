import java.io.InputStream;
import java.util.ArrayDeque;
import java.util.Random;

/**
 * All that moves objects between parts of a heap of G1 at once: an old generation that dies at random (mixed
 * collections), large arrays, classes that are unloaded and their objects, full collections. Arguments: rounds, thousand
 * slots, rounds between full collections (0: none).
 */
public class Swirl {
    public static class Victim {
        public int a;
        public Object c;

        public Object make() {
            return new int[40];
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass("Swirl$Victim", b, 0, b.length);
        }
    }

    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        byte[] code;
        try (InputStream in = Swirl.class.getResourceAsStream("Swirl$Victim.class")) {
            code = in.readAllBytes();
        }
        int rounds = Integer.parseInt(a[0]), full = Integer.parseInt(a[2]);
        Object[][] old = new Object[Integer.parseInt(a[1])][1000];
        Object[] big = new Object[6];
        ArrayDeque<Object[]> kept = new ArrayDeque<>();
        Random r = new Random(3);
        for (int n = 1; n <= rounds; n++) {
            for (int i = 0; i < 2000; i++) {
                old[r.nextInt(old.length)][r.nextInt(1000)] = i % 4 == 0 ? new Object[r.nextInt(20)] : new byte[r.nextInt(150)];
                sink = new byte[40];
            }
            if (r.nextInt(20) == 0) big[r.nextInt(big.length)] = r.nextBoolean() ? new byte[600_000 + r.nextInt(3_000_000)] : new Object[150_000 + r.nextInt(300_000)];
            if (r.nextInt(3) == 0) {
                Class<?> k = new Loader().define(code);
                Object[] own = new Object[60];
                for (int j = 0; j < 30; j++) own[j] = k.getDeclaredConstructor().newInstance();
                var make = k.getMethod("make");
                for (int j = 30; j < own.length; j++) own[j] = make.invoke(own[0]);
                kept.add(own);
                if (kept.size() > 50 + r.nextInt(100)) kept.poll();
            }
            if (full > 0 && n % full == 0) System.gc();
        }
        sink = old;
        System.out.println(big.length + kept.size());
        System.out.println("done");
    }
}
