import java.util.Random;
import java.util.zip.Deflater;

/**
 * Threads hold critical sections of JNI nearly all the time, so that Serial and Parallel give up collections. While one
 * is held and eden is full, Serial allocates in survivor space. Arguments: seconds, thousand objects that live.
 */
public class Gripped {
    static volatile boolean stop;
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        Thread[] ts = new Thread[2];
        for (int i = 0; i < ts.length; i++) {
            ts[i] = new Thread(() -> {
                byte[] in = new byte[2 << 20], out = new byte[3 << 20];
                new Random(5).nextBytes(in);
                while (!stop) {
                    Deflater d = new Deflater(6);
                    d.setInput(in);
                    d.finish();
                    d.deflate(out);
                    d.end();
                }
            });
            ts[i].start();
        }
        Object[] live = new Object[1000 * Integer.parseInt(a[1])];
        Random r = new Random(7);
        for (long end = System.nanoTime() + 1_000_000_000L * Integer.parseInt(a[0]); System.nanoTime() < end;) {
            for (int i = 0; i < 1000; i++) {
                Object o = i % 3 == 0 ? new Object[r.nextInt(30)] : new byte[r.nextInt(300)];
                if (r.nextInt(8) == 0) live[r.nextInt(live.length)] = o;
            }
            sink = new byte[r.nextInt(1_000_000)];
            if (r.nextInt(3) == 0) live[r.nextInt(live.length)] = sink;
        }
        stop = true;
        for (Thread t : ts) t.join();
        sink = live;
        System.out.println("done");
    }
}
