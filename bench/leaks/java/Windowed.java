import java.util.ArrayList;
import java.util.TreeMap;

/** No leak: statistics of the last minutes in buckets of a tenth of the window each; old buckets are dropped. */
public class Windowed {
    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        TreeMap<Integer, ArrayList<Double>> buckets = new TreeMap<>();
        Work.until(args, 800, i -> {
            int b = (int) (Work.seconds() / end * 10);
            ArrayList<Double> now = buckets.computeIfAbsent(b, k -> new ArrayList<>());
            for (int k = 0; k < 30; k++) now.add(i * 1.5 + k);
            buckets.headMap(b - 2).clear();
        });
    }
}
