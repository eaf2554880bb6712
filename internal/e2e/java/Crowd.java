/** Threads that all allocate at once, and end. Arguments: how many, rounds of each. */
public class Crowd {
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Thread[] ts = new Thread[Integer.parseInt(a[0])];
        int rounds = Integer.parseInt(a[1]);
        java.util.concurrent.CountDownLatch all = new java.util.concurrent.CountDownLatch(1);
        int n = 0;
        for (; n < ts.length; n++) {
            ts[n] = new Thread(null, () -> {
                try {
                    all.await();
                } catch (InterruptedException e) {
                    return;
                }
                for (int i = 0; i < rounds; i++) sink = new byte[64 + i];
            }, "crowd", 1);
            try {
                ts[n].start();
            } catch (OutOfMemoryError e) {
                break;
            }
        }
        all.countDown();
        for (int i = 0; i < n; i++) ts[i].join();
        System.out.println("threads " + n);
        System.out.println("done");
    }
}
