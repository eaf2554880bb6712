import java.lang.reflect.Method;

/** Virtual threads by the thousand; compiles on 17 and needs 21 to run. Argument: rounds of 500 threads. */
public class Virtual {
    static volatile Object sink;

    static void body() {
        for (int j = 0; j < 300; j++) {
            sink = new byte[j % 500];
            if (j % 50 == 0) Thread.yield();
        }
    }

    public static void main(String[] a) throws Exception {
        Method start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            Thread[] ts = new Thread[500];
            for (int k = 0; k < ts.length; k++) ts[k] = (Thread) start.invoke(null, (Runnable) Virtual::body);
            for (Thread t : ts) t.join();
        }
        System.out.println("done");
    }
}
