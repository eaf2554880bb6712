import java.util.Iterator;
import java.util.concurrent.ConcurrentLinkedQueue;

/** No leak: subscribers join and leave, so many on average, in a linked queue. */
public class Subscribers {
    static final class Subscriber {
        final int until;
        final char[] buffer = new char[400];

        Subscriber(int until) { this.until = until; }
    }

    public static void main(String[] args) throws Exception {
        ConcurrentLinkedQueue<Subscriber> all = new ConcurrentLinkedQueue<>();
        Work.until(args, 600, i -> {
            all.add(new Subscriber(i + 500 + i * 31 % 900));
            if (i % 50 == 0) {
                for (Iterator<Subscriber> it = all.iterator(); it.hasNext();) {
                    if (it.next().until < i) it.remove();
                }
            }
        });
    }
}
