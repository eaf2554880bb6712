import java.util.ArrayList;
import java.util.List;

/** Leaks: a log of what was done that nobody trims. */
public class SlowList {
    static final List<Object> log = new ArrayList<>();

    static void note(int i) {
        log.add(new long[40 + i % 8]); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 2000, i -> { if (i % 4 == 0) note(i); });
    }
}
