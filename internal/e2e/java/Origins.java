import java.util.ArrayList;
import java.util.List;

/** Holds 40 arrays of another class for each line that it reads, from one site each, and says "held N"; at the fifth it ends. In between it churns. */
public class Origins {
    static final class Old {}

    static final class First {}

    static final class Later {}

    static final class Last {}

    static volatile Object sink;
    static volatile boolean over;
    static final List<Object> keep = new ArrayList<>();

    static Object make(int n) {
        switch (n) {
            case 0:
                return new Old[20_000]; // SITE Old
            case 1:
                return new First[20_000]; // SITE First
            case 2:
                return new Later[20_000]; // SITE Later
            default:
                return new Last[20_000]; // SITE Last
        }
    }

    static void churn() {
        for (int i = 0; i < 400; i++) sink = new byte[1 << 16];
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Thread t = new Thread(() -> {
            while (!over) {
                churn();
                try {
                    Thread.sleep(20);
                } catch (InterruptedException e) {
                    return;
                }
            }
        });
        t.start();
        for (int n = 0; n < 4; n++) {
            System.in.read();
            churn(); // this thread's draw is older than the interval in force
            for (int i = 0; i < 40; i++) keep.add(make(n));
            System.gc();
            System.out.println("held " + n);
        }
        System.in.read();
        over = true;
        t.join();
        System.out.println(keep.size());
        System.out.println("done");
    }
}
