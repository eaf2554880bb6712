import java.util.ArrayList;
import java.util.List;

/** No leak: batches of a fifth of the window that are collected, written and dropped. */
public class Sawtooth {
    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        int most = (int) (end / 5 * 1000);
        List<byte[]> batch = new ArrayList<>();
        Work.until(args, 2000, i -> {
            if (i % 2 == 0) batch.add(new byte[2000]);
            if (batch.size() >= most) batch.clear();
        });
    }
}
