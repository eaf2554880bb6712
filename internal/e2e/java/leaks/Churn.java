import java.util.Random;

/** No leak: a store of a fixed number of entries, each replaced again and again. */
public class Churn {
    public static void main(String[] args) throws Exception {
        byte[][] entries = new byte[20000][];
        Random r = new Random(5);
        Work.until(args, 2000, i -> {
            for (int k = 0; k < 4; k++) entries[r.nextInt(entries.length)] = new byte[1000 + r.nextInt(1000)];
        });
    }
}
