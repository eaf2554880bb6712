import java.lang.reflect.Method;
import java.util.concurrent.locks.LockSupport;

/**
 * Virtual threads by the thousand, and some that sleep with a stack of any depth across many collections, wake now and then and go on deeper or
 * flatter; compiles on 17 and needs 21 to run. Argument: rounds of 500 threads.
 */
public class Virtual {
    static volatile Object sink;
    static volatile boolean over;

    static void body() {
        for (int j = 0; j < 300; j++) {
            sink = new byte[j % 500];
            if (j % 50 == 0) Thread.yield();
        }
    }

    static long sleeper(int depth, long a, Object keep) {
        if (depth > 0) return sleeper(depth - 1, a + depth, new Object[] {keep, a}) + a;
        LockSupport.park();
        sink = keep;
        return a;
    }

    public static void main(String[] a) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        Thread[] held = new Thread[100];
        for (int k = 0; k < held.length; k++) {
            int n = k;
            held[k] = (Thread) start.invoke(null, (Runnable) () -> {
                for (int i = 0; !over; i++) sink = sleeper((n * 7 + i * 13) % 60, n, null);
            });
        }
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            Thread[] ts = new Thread[500];
            for (int k = 0; k < ts.length; k++) ts[k] = (Thread) start.invoke(null, (Runnable) Virtual::body);
            for (Thread t : ts) t.join();
            for (int k = i % 7; k < held.length; k += 7) LockSupport.unpark(held[k]);
        }
        over = true;
        for (Thread t : held) {
            while (t.isAlive()) {
                LockSupport.unpark(t);
                Thread.yield();
            }
        }
        System.out.println("done");
    }
}
