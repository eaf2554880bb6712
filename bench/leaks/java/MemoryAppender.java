import java.util.ArrayList;
import java.util.List;

/** Leaks to an OutOfMemoryError: a log is kept in blocks of 8 KiB until an error flushes it; there is never one. */
public class MemoryAppender {
    static final List<byte[]> blocks = new ArrayList<>();
    static byte[] block = new byte[8192];
    static int used;

    static void log(String s) {
        byte[] b = s.getBytes();
        if (used + b.length > block.length) {
            blocks.add(block);
            block = new byte[8192]; // LEAK
            used = 0;
        }
        System.arraycopy(b, 0, block, used, b.length);
        used += b.length;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            for (int k = 0; k < 12; k++) // LEAK
                log("12:01:02.345 INFO [worker-" + k + "] shop.Orders: order " + i + " was looked at by customer " // LEAK
                    + k + ", who did not buy anything this time, but may do so later\n"); // LEAK
        });
    }
}
