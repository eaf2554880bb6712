import java.util.ArrayDeque;

/** No leak: the load rises to four times as much from a quarter to half of the window, and stays so. */
public class LoadRises {
    record Order(double at, long[] lines, String who) { }

    static final ArrayDeque<Order> open = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        double[] due = {0};
        Work.until(args, 250, i -> {
            double now = Work.seconds(), x = Math.min(1, Math.max(0, (now / end - 0.25) * 4));
            for (due[0] += 1 + 3 * x; due[0] >= 1; due[0]--) open.add(new Order(now, new long[180], "user " + i));
            while (!open.isEmpty() && open.peek().at < now - end / 8) open.poll();
        });
    }
}
