import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Fills its heap slowly, amid garbage, until an OutOfMemoryError, which it catches. */
public class Fill {
    static volatile Object sink;

    public static void main(String[] a) {
        Random r = new Random(1);
        List<Object> held = new ArrayList<>();
        try {
            for (int i = 0; ; i++) {
                sink = new byte[r.nextInt(400)];
                if (i % 100 == 0) held.add(new byte[r.nextInt(400)]);
            }
        } catch (OutOfMemoryError e) {
            held = null;
        }
        System.out.println("done");
    }
}
