import java.util.ArrayDeque;

/** No leak: sessions live for a sixth of the window; their number follows the load, which rises towards the end. */
public class Daily {
    static final ArrayDeque<Object[]> sessions = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        while (Work.seconds() < end) {
            Work.request();
            double now = Work.seconds();
            sessions.add(new Object[] {now, new byte[2500]});
            while (now - (Double) sessions.peek()[0] > end / 6) sessions.poll();
            Work.pace((int) (400 - 330 * Math.cos(now / end * 3 * Math.PI)));
        }
    }
}
