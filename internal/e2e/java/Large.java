import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.Serializable;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

// Arrays too large for a thread's buffer, some of one length and type from two places, and objects read from a stream.
public class Large {
    static class Item implements Serializable { int value; }

    static Object[] fresh(int n) { return new Integer[n]; }
    static Object copied(Object[] a) { return a.clone(); }
    static Object shorter(Object[] a, int n) { return Arrays.copyOf(a, n); }
    static Object reflected(int n) { return Array.newInstance(Long.class, n); }
    static Object bytes(int n) { return new byte[n]; }

    public static void main(String[] args) throws Exception {
        int rounds = Integer.parseInt(args[0]);
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        ObjectOutputStream out = new ObjectOutputStream(stream);
        out.writeObject(new Item());
        out.flush();
        List<Object> keep = new ArrayList<>(), items = new ArrayList<>();
        for (int r = 0; r < rounds; r++) {
            Object[] a = fresh(60_000 + r);
            keep.add(a);
            keep.add(copied(a));
            keep.add(shorter(a, 50_000 - r));
            keep.add(reflected(40_000 + r));
            keep.add(bytes(1_000_000 + r));
            if (keep.size() > 40) keep.subList(0, 10).clear();
            for (int i = 0; i < 500; i++) {
                items.add(new ObjectInputStream(new ByteArrayInputStream(stream.toByteArray())).readObject());
            }
            if (items.size() > 20_000) items.subList(0, 5_000).clear();
        }
        for (Object x : items) if (((Item) x).value != 0) throw new IllegalStateException();
        System.out.println("done");
    }
}
