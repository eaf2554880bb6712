import java.util.ArrayList;
import java.util.List;

/** Two callers of one method that allocates: keep keeps all its arrays, cache replaces its own. Lengths tell whose. */
public class Callers {
    static final List<byte[]> kept = new ArrayList<>();
    static final byte[][] cached = new byte[20_000][];

    static byte[] make(int length) {
        return new byte[length];
    }

    static void keep() {
        kept.add(make(200));
    }

    static void cache(int i) {
        cached[i % cached.length] = make(300);
    }

    public static void main(String[] args) {
        int n = Integer.parseInt(args[0]);
        for (int i = 0; i < n; i++) {
            cache(i);
            if (i % 16 == 0) keep();
        }
        System.out.println("done");
    }
}
