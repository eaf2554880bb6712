import java.util.ArrayList;
import java.util.List;

/** No leak: each sixth of the window a report is made, for two thirds of that time, printed and dropped. */
public class Reports {
    static List<String> report;

    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        Work.until(args, 500, i -> {
            double at = Work.seconds() % (end / 6) / (end / 6);
            if (at > 2 / 3.0) report = null;
            else if (report == null) report = new ArrayList<>();
            if (report != null) for (int k = 0; k < 20; k++) report.add("line " + k + " of step " + i);
        });
    }
}
