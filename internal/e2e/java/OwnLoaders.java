import java.io.InputStream;
import java.util.Set;

/**
 * Class loaders that do not delegate as those of the JDK do: one knows a few classes alone, the other lets one thread
 * load at a time. Code that is put into their classes must not ask them for classes.
 */
public class OwnLoaders {
    public static class Inside implements Runnable {
        Object[] made;

        public void run() {
            for (int i = 0; i < 100_000; i++) made = new Object[10];
        }
    }

    static byte[] code() throws Exception {
        try (InputStream in = OwnLoaders.class.getResourceAsStream("OwnLoaders$Inside.class")) {
            return in.readAllBytes();
        }
    }

    static class Few extends ClassLoader {
        static final Set<String> known = Set.of("java.lang.Object", "java.lang.Runnable");
        Class<?> inside;

        static {
            registerAsParallelCapable();
        }

        Few() {
            super(null);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (known.contains(name)) return Class.forName(name, false, null);
            throw new ClassNotFoundException("not known: " + name);
        }

        Runnable load() throws Exception {
            byte[] b = code();
            return (Runnable) defineClass("OwnLoaders$Inside", b, 0, b.length).getDeclaredConstructor().newInstance();
        }
    }

    static class OneAtATime extends ClassLoader { // not parallel capable
        OneAtATime() {
            super(null);
        }

        Runnable load() throws Exception {
            byte[] b = code();
            return (Runnable) defineClass("OwnLoaders$Inside", b, 0, b.length).getDeclaredConstructor().newInstance();
        }
    }

    public static void main(String[] args) throws Exception {
        new Few().load().run();
        OneAtATime one = new OneAtATime();
        Runnable r = one.load();
        Thread t = new Thread(r);
        synchronized (one) { // who asks this loader for a class waits for ever
            t.start();
            t.join();
        }
        System.out.println("done");
    }
}
