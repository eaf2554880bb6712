import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Holds secrets wherever a program can: fields, strings, arrays, a thread's name, its environment, system properties and arguments. Arguments: the
 * file that ends it, then what is secret. Prints its pid first and "done" last.
 */
public class Secrets {
    static final List<Object> kept = new ArrayList<>();
    static volatile Object sink;
    long number = 0x5345435245544C4EL; // "SECRETLN"
    String string = "secret-literal-" + System.nanoTime() / Long.MAX_VALUE;
    char[] chars = "secret-chars-7f3a".toCharArray();
    byte[] bytes = "secret-bytes-7f3a".getBytes(StandardCharsets.UTF_8);
    double real = Double.longBitsToDouble(0x5345435245544442L); // "SECRETDB"

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        for (String s : a) kept.add(s + "-copied");
        kept.add(System.getenv("HC_SECRET"));
        kept.add(System.getProperty("hc.secret"));
        Thread t = new Thread(() -> {
            while (!Files.exists(Path.of(a[0]))) {
                for (int i = 0; i < 2000; i++) {
                    sink = new Secrets();
                    if (i % 100 == 0) kept.add(sink);
                }
                if (kept.size() > 20000) kept.subList(10, 10000).clear();
            }
        }, "card 4929123456781234 of user-55512345");
        t.start();
        t.join();
        System.out.println("done");
    }
}
