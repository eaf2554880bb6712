import java.util.ArrayList;

/** Leaks when it works; it is idle for half of the time, in phases. */
public class Idles {
    static final ArrayList<int[]> kept = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        while (Work.seconds() < end) {
            double until = Work.seconds() + end / 12;
            for (int i = 0; Work.seconds() < until; i++) {
                Work.request();
                kept.add(new int[250]); // LEAK
                Work.pace(800);
            }
            Thread.sleep((long) (end / 12 * 1000));
        }
    }
}
