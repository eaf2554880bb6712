import java.io.InputStream;
import java.util.ArrayDeque;

/** Loads and drops classes of two sizes beside much that lives. Arguments: MiB that live, seconds. */
public class UnloadBeside {
    public static class Small {
        public int a;
    }

    public static class Large {
        public long a, b, c, d, e, f, g, h, i;
    }

    static final class Loader extends ClassLoader {
        Object[] objects(String name, byte[] b) throws Exception {
            var make = defineClass(name, b, 0, b.length).getDeclaredConstructor();
            Object[] out = new Object[500];
            for (int i = 0; i < out.length; i++) out[i] = make.newInstance();
            return out;
        }
    }

    static final class Node {
        final Node next;

        Node(Node next) {
            this.next = next;
        }
    }

    static Node[] live;
    static volatile Object sink;

    static byte[] code(String name) throws Exception {
        try (InputStream in = UnloadBeside.class.getResourceAsStream(name + ".class")) {
            return in.readAllBytes();
        }
    }

    public static void main(String[] args) throws Exception {
        live = new Node[Integer.parseInt(args[0])];
        for (int i = 0; i < live.length; i++) for (int n = 0; n < 65_536; n++) live[i] = new Node(live[i]);
        String[] names = {"UnloadBeside$Small", "UnloadBeside$Large"};
        byte[][] codes = {code(names[0]), code(names[1])};
        ArrayDeque<Object[]> kept = new ArrayDeque<>();
        long end = System.nanoTime() + Integer.parseInt(args[1]) * 1_000_000_000L;
        for (int n = 0; System.nanoTime() < end; n++) {
            // in turns many of one size, then many of the other: what one has left is used by the other
            for (int i = 0; i < 100; i++) {
                kept.add(new Loader().objects(names[n & 1], codes[n & 1]));
                if (kept.size() > 150) kept.poll();
                for (int j = 0; j < 500; j++) sink = new byte[500];
            }
            if (n % 3 == 2) System.gc(); // a concurrent cycle
            Thread.sleep(20);
        }
        System.out.println("done");
    }
}
