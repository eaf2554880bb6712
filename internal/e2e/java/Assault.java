import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Allocates from some threads until somebody makes a file, and computes the same sum again and again: the last line is "done" only if it always was
 * the same. Arguments: the file, threads. Prints its pid first.
 */
public class Assault {
    static volatile Object sink;
    static volatile boolean over, wrong;

    static long sum() {
        Map<Integer, Object[]> m = new HashMap<>();
        long s = 0;
        for (int i = 0; i < 3000; i++) {
            m.put(i % 500, new Object[] {Integer.toString(i), new int[] {i, i + 1}});
            sink = new byte[i % 200];
        }
        for (Object[] o : m.values()) s = s * 31 + o[0].hashCode() + ((int[]) o[1])[1];
        return s;
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Path file = Path.of(a[0]);
        Thread[] ts = new Thread[Integer.parseInt(a[1])];
        long right = sum();
        for (int i = 0; i < ts.length; i++) {
            ts[i] = new Thread(() -> {
                while (!over) wrong |= sum() != right;
            });
            ts[i].start();
        }
        while (!Files.exists(file)) Thread.sleep(10);
        over = true;
        for (Thread t : ts) t.join();
        System.out.println(wrong ? "wrong" : "done");
    }
}
