/** Threads by the thousand, each allocating and going. Argument: rounds of 50 threads. */
public class Storm {
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            Thread[] ts = new Thread[50];
            for (int k = 0; k < ts.length; k++) {
                ts[k] = new Thread(() -> {
                    for (int j = 0; j < 3000; j++) sink = new byte[j % 500];
                });
                ts[k].start();
            }
            for (Thread t : ts) t.join();
        }
        System.out.println("done");
    }
}
