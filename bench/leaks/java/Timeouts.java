import java.util.PriorityQueue;

/** No leak: each call has a timeout in a heap of timers, which takes it out after nine twentieths of the window. */
public class Timeouts {
    static final class Timer implements Comparable<Timer> {
        final double due;
        final String what;
        final byte[] context = new byte[900];

        Timer(double due, int i) {
            this.due = due;
            what = "timeout of call " + i;
        }

        @Override public int compareTo(Timer t) { return Double.compare(due, t.due); }
    }

    static final PriorityQueue<Timer> timers = new PriorityQueue<>();

    public static void main(String[] args) throws Exception {
        double after = Double.parseDouble(args[0]) * 0.45;
        Work.until(args, 600, i -> {
            timers.add(new Timer(Work.seconds() + after, i));
            while (timers.peek().due < Work.seconds()) timers.poll();
        });
    }
}
