import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;

/** Loads and drops classes at a steady rate until somebody makes a file. Arguments: the file, loaders a second, loaders kept. Prints its pid first. */
public class ClassChurn {
    public static class Victim {
        public int a;
        public Object c;

        public Object make() {
            return new int[40];
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass("ClassChurn$Victim", b, 0, b.length);
        }
    }

    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        byte[] code;
        try (InputStream in = ClassChurn.class.getResourceAsStream("ClassChurn$Victim.class")) {
            code = in.readAllBytes();
        }
        Path file = Path.of(a[0]);
        int rate = Integer.parseInt(a[1]), keep = Integer.parseInt(a[2]);
        ArrayDeque<Object[]> kept = new ArrayDeque<>();
        for (long i = 0; !Files.exists(file); i++) {
            Class<?> k = new Loader().define(code);
            Object[] own = new Object[200];
            for (int j = 0; j < 10; j++) own[j] = k.getDeclaredConstructor().newInstance();
            var make = k.getMethod("make");
            for (int j = 10; j < own.length; j++) own[j] = make.invoke(own[0]);
            kept.add(own);
            if (kept.size() > keep) kept.poll();
            for (int j = 0; j < 400; j++) sink = new byte[500];
            if (i % 10 == 9) Thread.sleep(10_000 / rate);
        }
        System.out.println("done");
    }
}
