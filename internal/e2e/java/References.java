import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** Holds objects in every way that a reference listing tells apart. Argument: the file that ends it. Prints its pid first. */
public class References {
    static class Base {
        Object inBase;
        long number = 0x5345435245544C4EL; // no value may be recorded
    }

    static class Derived extends Base {
        int between;
        Object inDerived;
    }

    static class Held {}

    static class SoftlyHeld {}

    static class WeaklyHeld {}

    interface Constants {
        Object CONSTANT = new Held();
    }

    static final Map<Integer, Object> cache = new HashMap<>();
    static Object[] array = new Object[50_000];
    static SoftReference<Object> soft = new SoftReference<>(new SoftlyHeld());
    static WeakReference<Object> weak;
    static PhantomReference<Object> phantom;

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Object strong = new WeaklyHeld();
        weak = new WeakReference<>(strong);
        phantom = new PhantomReference<>(strong, new ReferenceQueue<>());
        for (int i = 0; i < 20_000; i++) {
            Derived d = new Derived();
            d.inBase = new Held();
            d.inDerived = i % 2 == 0 ? d : null;
            cache.put(i, d);
            array[i] = d;
        }
        System.gc();
        System.out.println("ready " + Constants.CONSTANT.hashCode());
        while (!Files.exists(Path.of(a[0]))) Thread.sleep(20);
        System.out.println(strong.hashCode());
        System.out.println("done");
    }
}
