import java.util.ArrayList;

/** Leaks slowly: a tenth of a percent of the heap a minute or some more. */
public class Trickle {
    static final ArrayList<String> warnings = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double per = Runtime.getRuntime().maxMemory() * 0.002 / 60 / 200;
        Work.until(args, 400, i -> {
            if (i % 400 < per)
                warnings.add("a warning that is kept, " + i + ", about two hundred bytes".repeat(5)); // LEAK
        });
    }
}
