import java.util.Timer;
import java.util.TimerTask;

/** Leaks: time-outs of an hour that are cancelled in time, but java.util.Timer keeps them until the hour is over. */
public class CancelledTimers {
    static final Timer timer = new Timer("timeouts", true);
    static int count;

    static final class Timeout extends TimerTask {
        final byte[] request;

        Timeout(byte[] request) { this.request = request; }

        @Override
        public void run() { }
    }

    static void handle(int i) {
        byte[] request = ("GET /orders/" + i + " HTTP/1.1\r\nAccept: text/html; charset=utf-8\r\n\r\n").repeat(3)
            .getBytes(); // LEAK
        Timeout t = new Timeout(request); // LEAK
        timer.schedule(t, 3_600_000); // LEAK
        t.cancel();
        count++;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 900, CancelledTimers::handle); // LEAK
        System.out.println("kept " + count * 350L);
    }
}
