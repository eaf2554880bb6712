import java.util.ArrayList;
import java.util.List;

/** No leak: a report collects its lines for eight tenths of the window, writes them and forgets them. */
public class ResultPages {
    static List<String[]> result = new ArrayList<>();
    static long written;

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Work.until(args, 500, i -> {
            if (Work.seconds() < 0.8 * end) {
                result.add(new String[] {"customer " + i, "street " + i % 900, "sum " + i * 31L, "page " + i / 50});
            } else if (!result.isEmpty()) {
                for (String[] line : result) written += String.join(";", line).length();
                result = new ArrayList<>();
            }
        });
    }
}
