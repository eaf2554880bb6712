import java.util.HashMap;
import java.util.Map;

/** A map that is never emptied, beside garbage. Prints how many sessions there are: the truth. Arguments: seconds, and
 * seconds between two calls of System.gc(), 0 for none. */
public class KeptSessions {
    static final Map<Integer, Session> SESSIONS = new HashMap<>();
    static volatile Object sink;

    static class Session {
        final byte[] payload;
        final String user;

        Session(int i) {
            payload = new byte[200];
            user = "user-" + i;
        }
    }

    static void garbage() {
        for (int k = 0; k < 40; k++) {
            sink = new StringBuilder().append("req").append(k).toString();
            sink = new int[64];
        }
        sink = new byte[2048];
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        long end = System.nanoTime() + Integer.parseInt(a[0]) * 1_000_000_000L;
        long every = Integer.parseInt(a[1]) * 1_000_000_000L;
        long next = System.nanoTime() + every;
        int i = 0;
        while (System.nanoTime() < end) {
            for (int j = 0; j < 100; j++) {
                SESSIONS.put(i, new Session(i++));
                for (int g = 0; g < 4; g++) {
                    garbage();
                }
            }
            if (every > 0 && System.nanoTime() > next) {
                System.gc();
                next = System.nanoTime() + every;
            }
            Thread.sleep(5);
        }
        System.gc();
        System.out.println("sessions " + SESSIONS.size());
        System.out.println("done");
    }
}
