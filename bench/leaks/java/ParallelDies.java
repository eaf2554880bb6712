import java.util.ArrayList;

/** Leaks while it allocates much else, until it dies: made for Parallel with a budget that lowers the depth. */
public class ParallelDies {
    static final ArrayList<Object[]> log = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double rate = Runtime.getRuntime().maxMemory() / 1000.0 / (end * 0.7);
        double[] owed = {0};
        Work.until(args, 3000, i -> {
            byte[][] waste = new byte[20][];
            for (int k = 0; k < waste.length; k++) waste[k] = new byte[1000];
            for (owed[0] += rate / 3000; owed[0] >= 1; owed[0]--)
                log.add(new Object[] {i, new int[200]}); // LEAK
        });
    }
}
