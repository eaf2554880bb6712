import java.util.ArrayList;
import java.util.List;

/**
 * Leaks: callbacks are registered and never removed. The heap is full after a sixth of the window; the program
 * goes on.
 */
public class Callbacks {
    static final class Registration {
        final Runnable what;
        final byte[] context;

        Registration(Runnable what, int n) {
            this.what = what;
            context = new byte[n]; // LEAK
        }
    }

    static final List<Registration> all = new ArrayList<>();
    static int fired;

    static void register(int i) {
        int[] own = new int[20]; // LEAK
        all.add(new Registration(() -> fired += own.length, 2000)); // LEAK
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double per = args.length > 1 ? Double.parseDouble(args[1]) : 6;
        double rate = Runtime.getRuntime().maxMemory() / 2300.0 / (end / per);
        double[] owed = {0};
        boolean[] full = {false};
        Work.until(args, 500, i -> {
            owed[0] += rate / 500;
            try {
                for (; owed[0] >= 1; owed[0]--) register(i);
            } catch (OutOfMemoryError e) {
                owed[0] = 0;
                if (!full[0]) System.out.println("full after " + Work.seconds());
                full[0] = true;
                Thread.sleep(50);
            }
        });
    }
}
