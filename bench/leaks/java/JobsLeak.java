import java.util.ArrayList;
import java.util.List;

/** Leaks: batch jobs that free their rows, but each leaves its log in the history of jobs. */
public class JobsLeak {
    static final class Job {
        final List<String> log = new ArrayList<>();
        final List<byte[]> rows = new ArrayList<>();

        void row(int i) {
            rows.add(new byte[700]);
            log.add("row " + i + " was read, converted and written to the table of results"); // LEAK
        }

        void end() { rows.clear(); }
    }

    static final List<Job> history = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Job[] now = {new Job()};
        Work.until(args, 600, i -> {
            for (int k = 0; k < 4; k++) now[0].row(i);
            if (i % 1500 == 1499) {
                now[0].end();
                history.add(now[0]);
                now[0] = new Job();
            }
        });
    }
}
