import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Leaks, in few collections: each request sets a time-out of ten minutes and never cancels it. */
public class Timers {
    static final ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1);
    static volatile Object last;

    static void request(int i) {
        byte[] body = new byte[1000]; // LEAK
        timers.schedule(() -> { last = body; }, 600, TimeUnit.SECONDS); // LEAK: the task
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, Timers::request);
        timers.shutdownNow();
    }
}
