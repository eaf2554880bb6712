import java.util.ArrayList;
import java.util.List;

/** No leak: an import that grows for three fifths of the window and is then let go. */
public class Released {
    static List<int[]> rows = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        Work.until(args, 2000, i -> {
            if (Work.seconds() < 0.6 * end) rows.add(new int[300]);
            else if (rows.size() > 0) rows = new ArrayList<>();
        });
    }
}
