import java.io.File;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Fills memory outside the heap until it is killed, or holds so many MiB. Arguments: MiB, ms that it works before, and a file that ends this. */
public class Outside {
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        File fill = new File(a.length > 2 ? a[2] : "/none");
        for (long end = System.currentTimeMillis() + Long.parseLong(a[1]); System.currentTimeMillis() < end && !fill.exists(); Thread.sleep(1)) {
            for (int i = 0; i < 100; i++) sink = new byte[1000];
        }
        System.gc();
        System.out.println("filling");
        List<ByteBuffer> all = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(a[0]); i++) {
            ByteBuffer b = ByteBuffer.allocateDirect(1 << 20);
            for (int at = 0; at < b.capacity(); at += 4096) b.put(at, (byte) 1); // resident
            all.add(b);
            Thread.sleep(1);
        }
        System.out.println("held " + all.size());
        System.in.read();
    }
}
