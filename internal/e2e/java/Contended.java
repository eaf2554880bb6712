/** Threads contend for locks of ever new objects, by synchronized methods. Argument: rounds. */
public class Contended {
    private int n;

    synchronized void bump() { n++; }

    public static void main(String[] a) throws Exception {
        int rounds = Integer.parseInt(a[0]);
        long sum = 0;
        for (int r = 0; r < rounds; r++) {
            Contended[] some = new Contended[200];
            for (int i = 0; i < some.length; i++) some[i] = new Contended();
            Thread[] threads = new Thread[4];
            for (int t = 0; t < threads.length; t++) {
                threads[t] = new Thread(() -> {
                    for (Contended c : some) for (int i = 0; i < 20; i++) c.bump();
                });
                threads[t].start();
            }
            for (Thread t : threads) t.join();
            for (Contended c : some) sum += c.n;
        }
        System.out.println(sum == rounds * 200L * 4 * 20 ? "done" : "?");
    }
}
