import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Keeps some objects of each of 512 allocation sites, and allocates a little, so that there is a young collection every few seconds. Arguments: the file
 * that ends it, bytes a second. Prints its pid first and "done" last.
 */
public class Fleet {
    static final List<Object> keep = new ArrayList<>();
    static volatile Object sink;

    static void path(int n) {
        if (n == 0) {
            for (int i = 0; i < 16; i++) keep.add(new byte[1000]);
            return;
        }
        path(n - 1);
        path(n - 1);
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        path(9);
        int rate = Integer.parseInt(a[1]);
        while (!Files.exists(Path.of(a[0]))) {
            for (int i = 0; i < rate; i += 1000) sink = new byte[1000];
            Thread.sleep(1000);
        }
        System.out.println("done");
    }
}
