import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/** Leaks: a connection pool that makes a connection when it has none; an error path of each tenth request keeps it. */
public class PoolLeak {
    static final class Conn {
        final byte[] buffer = new byte[6000]; // LEAK
        final StringBuilder log = new StringBuilder();
    }

    static final ArrayDeque<Conn> idle = new ArrayDeque<>();
    static final List<Conn> all = new ArrayList<>();

    static Conn take() {
        Conn c = idle.poll();
        if (c == null) {
            c = new Conn(); // LEAK
            all.add(c);
        }
        return c;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 700, i -> {
            Conn c = take();
            c.log.setLength(0);
            c.log.append("select ").append(i);
            if (i % 10 != 0) idle.add(c);
        });
    }
}
