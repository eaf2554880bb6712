import java.util.*;

/** Holds sessions in a static map: 1.4 references an object. Argument: objects. Ends with its standard input. */
public class Held {
    static class Session {
        String id;
        List<Object> data = new ArrayList<>(2);
        Session before;
        long[] times = new long[4];
    }

    static final Map<Object, Session> BY_KEY = new HashMap<>();

    public static void main(String[] a) throws Exception {
        Session before = null;
        for (int i = 0; i < Integer.parseInt(a[0]) / 9; i++) { // of nine objects each
            Session s = new Session();
            s.id = "session " + i;
            s.data.add(new Object());
            s.data.add(s);
            s.before = before;
            BY_KEY.put(new Object(), s);
            before = i % 100 == 0 ? null : s;
        }
        System.gc();
        System.out.println("ready");
        while (System.in.read() >= 0) { }
    }
}
