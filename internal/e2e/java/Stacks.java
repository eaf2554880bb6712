import java.util.ArrayList;
import java.util.List;

/** Allocates at the end of each of 2^n stacks, and deep down in a recursion; then often at a site that is new. */
public class Stacks {
    static final List<Object> keep = new ArrayList<>();

    static void path(int n) {
        if (n == 0) {
            keep.add(new long[4]);
            return;
        }
        path(n - 1);
        path(n - 1);
    }

    static void late() {
        keep.add(new char[50]);
    }

    static void deep(int n) {
        if (n == 0) {
            keep.add(new short[100]);
            return;
        }
        deep(n - 1);
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 10000; i++) keep.add(new byte[1000]); // the JVM draws its first sample at 512 KiB on average
        deep(1000);
        path(Integer.parseInt(args[0]));
        for (int i = 0; i < 100; i++) { // the table gets room meanwhile, if it is full
            for (int k = 0; k < 25; k++) late();
            Thread.sleep(50);
        }
        System.gc();
        Thread.sleep(300);
        System.out.println(keep.size());
        System.out.println("done");
    }
}
