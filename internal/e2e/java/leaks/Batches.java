import java.util.ArrayList;
import java.util.List;

/** No leak: four batches in the window, each collected into a list and dropped. */
public class Batches {
    static List<Object[]> rows = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        int[] no = {0};
        Work.until(args, 900, i -> {
            if (Work.seconds() > (no[0] + 1) * end / 4) {
                no[0]++;
                rows = new ArrayList<>();
            }
            rows.add(new Object[] {i, "row " + i, new byte[800]});
        });
    }
}
