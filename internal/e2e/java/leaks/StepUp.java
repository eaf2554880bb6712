import java.util.ArrayDeque;

/** No leak: twice the load from the middle of the window on, and twice as much that is open. */
public class StepUp {
    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        ArrayDeque<byte[]> open = new ArrayDeque<>();
        Work.until(args, 1000, i -> {
            int load = Work.seconds() < end / 2 ? 1 : 2;
            for (int k = 0; k < load; k++) open.add(new byte[1200]);
            while (open.size() > 4000 * load) open.poll();
        });
    }
}
