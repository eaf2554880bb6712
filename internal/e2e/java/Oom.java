import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Runs out of memory: of the heap ("heap") or of direct memory ("direct"); with a second argument "caught" it does so five times and ends well. */
public class Oom {
    static volatile Object sink;

    public static void main(String[] a) {
        for (int i = 0; i < 20; i++) { // something to see before
            List<Object> some = new ArrayList<>();
            for (int k = 0; k < 20_000; k++) some.add(new byte[100]);
            sink = some;
        }
        for (int i = 0; i < 5; i++) {
            try {
                List<Object> all = new ArrayList<>();
                sink = all;
                while (true) all.add(a[0].equals("direct") ? ByteBuffer.allocateDirect(1 << 20) : (Object) new byte[50_000]);
            } catch (OutOfMemoryError e) {
                sink = null;
                if (a.length < 2) throw e;
            }
        }
        System.out.println("done");
    }
}
