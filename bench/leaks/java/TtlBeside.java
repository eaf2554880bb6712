import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** Leaks: a window of events that is full after four tenths, and beside it a history that nobody shortens. */
public class TtlBeside {
    static final class Event {
        final double at = Work.seconds();
        final long[] values = new long[120];
    }

    static final ArrayDeque<Event> events = new ArrayDeque<>();
    static final List<String> history = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        double span = Double.parseDouble(args[0]) * 0.4;
        Work.until(args, 500, i -> {
            events.add(new Event());
            while (events.peek().at < Work.seconds() - span) events.poll();
            history.add("event " + i + " at " + Work.seconds() + " with " + "values".repeat(80)); // LEAK
        });
    }
}
