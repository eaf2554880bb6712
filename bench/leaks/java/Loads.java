import java.util.ArrayList;

/** No leak: a large set of data is loaded in the first third, bit by bit, and stays; then work as ever. */
public class Loads {
    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        ArrayList<Object[]> data = new ArrayList<>();
        Work.until(args, 600, i -> {
            if (Work.seconds() > end / 3) return;
            for (int k = 0; k < 3; k++) data.add(new Object[] {i, "row " + i + "." + k, new byte[300]});
        });
    }
}
