import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** What all programs of this folder have in common: requests that allocate and let go, some of it after seconds. */
final class Work {
    static final class Request {
        final int id;
        final List<String> parts = new ArrayList<>();
        byte[] body;

        Request(int id) { this.id = id; }
    }

    private static final Random random = new Random(1);
    private static final ArrayDeque<Request> open = new ArrayDeque<>();
    private static long at = System.nanoTime();
    private static final long begin = System.nanoTime();
    private static int made, most = 200;

    /** One request: about 12 KB that die soon, and one of twenty stays open for a sixth of the program's time. */
    static Request request() {
        Request r = new Request(made++);
        for (int i = 0; i < 40; i++) r.parts.add("part " + i + " of " + r.id);
        r.body = new byte[2000 + random.nextInt(12000)];
        if (r.id % 20 == 0) {
            open.add(r);
            if (open.size() > most) open.poll();
        }
        return r;
    }

    /** Sleeps so that this is called per times a second. */
    static void pace(int per) throws InterruptedException {
        at += 1_000_000_000L / per;
        long wait = at - System.nanoTime();
        if (wait > 2_000_000) Thread.sleep(wait / 1_000_000);
        else if (wait < -1_000_000_000L) at = System.nanoTime();
    }

    static double seconds() { return (System.nanoTime() - begin) / 1e9; }

    /** Requests until the time is over; step i of it does what. */
    static void until(String[] args, int per, Step what) throws Exception {
        double end = args.length > 0 ? Double.parseDouble(args[0]) : 60;
        most = (int) (end / 6 * per / 20);
        for (int i = 0; seconds() < end; i++) {
            request();
            what.run(i);
            pace(per);
        }
        System.out.println("done");
    }

    interface Step { void run(int i) throws Exception; }
}
