import java.util.concurrent.CountDownLatch;

/** Leaks: a worker thread for each client, which waits for ever; its task holds what it worked with. */
public class Threads {
    static final CountDownLatch never = new CountDownLatch(1);

    static void client(int id) {
        byte[][] buffers = new byte[4][4096]; // LEAK
        Thread t = new Thread(() -> {
            buffers[id % 4][0] = 1;
            try {
                never.await();
            } catch (InterruptedException e) {
                return;
            }
            System.out.println(buffers[0][0]);
        });
        t.setDaemon(true);
        t.start();
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            if (i % 25 == 0) client(i);
        });
    }
}
