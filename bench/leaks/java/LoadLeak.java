import java.util.HashMap;

/** Leaks with its load, which goes up and down like a day's. */
public class LoadLeak {
    static final HashMap<Long, byte[]> tokens = new HashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        long n = 0;
        while (Work.seconds() < end) {
            Work.request();
            if (n % 2 == 0) tokens.put(n, new byte[1500]); // LEAK
            n++;
            Work.pace((int) (420 + 380 * Math.sin(Work.seconds() / end * 4 * Math.PI)));
        }
    }
}
