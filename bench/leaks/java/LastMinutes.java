import java.util.ArrayDeque;

/** No leak: the events of the newest four tenths of the window, for a moving average. */
public class LastMinutes {
    static final class Event {
        final double at = Work.seconds();
        final int[] values = new int[400];
    }

    static final ArrayDeque<Event> events = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        double span = Double.parseDouble(args[0]) * 0.4;
        Work.until(args, 500, i -> {
            events.add(new Event());
            while (events.peek().at < Work.seconds() - span) events.poll();
        });
    }
}
