import java.util.ArrayList;
import java.util.List;

/** Fills most of the heap and churns in the rest, so that collections are full ones, one after the other. Arguments: milliseconds, percent. */
public class Tight {
    static volatile Object sink;

    public static void main(String[] a) {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000;
        long fill = Runtime.getRuntime().maxMemory() * Integer.parseInt(a[1]) / 100;
        List<byte[]> held = new ArrayList<>();
        for (long n = 0; n < fill; n += 1016) held.add(new byte[1000]);
        byte[][] young = new byte[500][];
        for (int i = 0; System.nanoTime() < end; i++) {
            young[i % young.length] = new byte[1000];
            if (i % 5 == 0) held.set(i % held.size(), new byte[1000]);
        }
        sink = held;
        System.out.println("done");
    }
}
