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
    static int fired, made;

    static void register(int i) {
        int[] own = new int[20]; // LEAK
        all.add(new Registration(() -> fired += own.length, 2000)); // LEAK
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double per = args.length > 1 ? Double.parseDouble(args[1]) : 6;
        double rate = Runtime.getRuntime().maxMemory() / 2300.0 / (end / per);
        double owed = 0;
        while (Work.seconds() < end) {
            try {
                Work.request();
                for (owed += rate / 500; owed >= 1; owed--) register(made++);
            } catch (OutOfMemoryError e) { // this request fails, the next one may not
                owed = 0;
                Thread.sleep(50);
            }
            Work.pace(500);
        }
    }
}
