import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Random;

/** No leak: sessions that come by chance and live for a sixth of the window on average: a ramp to what then stays. */
public class Sessions {
    static final class Session {
        final int id;
        final double until;
        final byte[] state;

        Session(int id, double until, byte[] state) {
            this.id = id;
            this.until = until;
            this.state = state;
        }
    }

    public static void main(String[] args) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        Map<Integer, Session> all = new HashMap<>();
        PriorityQueue<Session> next = new PriorityQueue<>(Comparator.comparingDouble(s -> s.until));
        Random r = new Random(5);
        Work.until(args, 500, i -> {
            while (!next.isEmpty() && next.peek().until < Work.seconds()) all.remove(next.poll().id);
            Session s = new Session(i, Work.seconds() - end / 6 * Math.log(1 - r.nextDouble()), new byte[1000]);
            all.put(i, s);
            next.add(s);
        });
    }
}
