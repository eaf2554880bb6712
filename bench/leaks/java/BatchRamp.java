import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** No leak: a batch reads its input for six tenths of the window, sorts and sums it, and writes the result. */
public class BatchRamp {
    record Row(int id, String customer, double amount) { }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        List<Row> rows = new ArrayList<>();
        Map<String, Double> sums = new HashMap<>();
        int[] at = {0};
        Work.until(args, 300, i -> {
            if (Work.seconds() < end * 0.6) {
                for (int k = 0; k < 15; k++) rows.add(new Row(i, "customer " + (i * 15 + k) % 5000, k));
            } else {
                if (at[0] == 0) rows.sort((a, b) -> a.customer.compareTo(b.customer));
                for (int k = 0; k < 30 && at[0] < rows.size(); k++, at[0]++)
                    sums.merge(rows.get(at[0]).customer, rows.get(at[0]).amount, Double::sum);
            }
        });
        System.out.println(sums.size());
    }
}
