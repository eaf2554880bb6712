import java.util.Random;

/**
 * Allocates so slowly into a young generation so large that no collection comes by itself; one is made for each line of input, and each is
 * reported by a line. Ends when its input does. Argument: KiB allocated a millisecond. Prints its pid first and "done" last.
 */
public class Quiet {
    static volatile Object sink;
    static volatile boolean over;

    static void churn(int rate) {
        Random r = new Random(7);
        Object[] held = new Object[20_000];
        long begun = System.nanoTime(), bytes = 0;
        while (!over) {
            for (int i = 0; i < 1000; i++) {
                int n = r.nextInt(200);
                Object o = i % 3 == 0 ? new Object[n / 8] : new byte[n];
                if (i % 5 == 0) held[r.nextInt(held.length)] = o;
                bytes += 16 + n;
            }
            long ahead = begun + bytes / rate * 1000 - System.nanoTime(); // a KiB is a thousand here
            if (ahead > 1_000_000) {
                try {
                    Thread.sleep(ahead / 1_000_000);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
        sink = held;
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Thread t = new Thread(() -> churn(Integer.parseInt(a[0])));
        t.start();
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\n') {
                System.gc();
                System.out.println("collected");
            }
        }
        over = true;
        t.join();
        System.out.println("done");
    }
}
