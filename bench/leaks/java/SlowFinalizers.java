import java.util.concurrent.atomic.AtomicLong;

/** Leaks: native handles whose finalizers are slower than their makers; the JDK's queue of finalizers holds them. */
@SuppressWarnings({"deprecation", "removal"})
public class SlowFinalizers {
    static final AtomicLong made = new AtomicLong(), closed = new AtomicLong();

    static final class Handle {
        final int[] table = new int[700]; // LEAK

        @Override
        protected void finalize() throws InterruptedException {
            Thread.sleep(20);
            closed.incrementAndGet();
        }
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            new Handle(); // LEAK
            made.incrementAndGet();
        });
        System.out.println("kept " + (made.get() - closed.get()) * 2900);
    }
}
