import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Leaks: a scheduler with one thread gets more mails to send than it can, and its queue has no limit. */
public class TaskBacklog {
    static final ScheduledExecutorService mailer = Executors.newScheduledThreadPool(1, r -> {
        Thread t = new Thread(r, "mailer");
        t.setDaemon(true);
        return t;
    });
    static final AtomicInteger queued = new AtomicInteger();

    static void send(int order) {
        StringBuilder text = new StringBuilder();
        for (int k = 0; k < 20; k++) text.append("line ").append(k).append(" of order ").append(order).append('\n');
        String mail = text.toString(); // LEAK
        queued.incrementAndGet();
        mailer.schedule(() -> { // LEAK
            try {
                Thread.sleep(12);
            } catch (InterruptedException e) {
                return;
            }
            if (mail.hashCode() == 1) System.out.println(mail);
            queued.decrementAndGet();
        }, 50, TimeUnit.MILLISECONDS);
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 700, TaskBacklog::send);
        System.out.println("kept " + queued.get() * 700L);
    }
}
