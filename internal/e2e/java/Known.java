import java.util.ArrayList;
import java.util.List;

/**
 * Known objects from known sites, held for good, in a sea of garbage. Argument: objects of the smallest site. Prints "SITE method line class
 * objects" for each site; the collections after that see exactly these.
 */
public class Known {
    static final class Apple {
        long a, b, c;
    }

    static final class Pear {
        Object a, b, c, d, e, f;
    }

    static volatile Object sink;
    static final List<Object> held = new ArrayList<>();

    static Object apple() {
        return new Apple(); // SITE apple Known$Apple 3
    }

    static Object pear() {
        return new Pear(); // SITE pear Known$Pear 2
    }

    static Object otherApple() {
        return new Apple(); // SITE otherApple Known$Apple 1
    }

    static Object bytes() {
        return new byte[2000]; // SITE bytes byte[] 1
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 3; k++) held.add(apple());
            for (int k = 0; k < 2; k++) held.add(pear());
            held.add(otherApple());
            held.add(bytes());
            for (int k = 0; k < 10; k++) sink = new byte[100];
        }
        for (int i = 0; i < 3; i++) {
            System.gc();
            for (int k = 0; k < 100_000; k++) sink = new byte[200];
        }
        System.gc();
        System.out.println("done");
    }
}
