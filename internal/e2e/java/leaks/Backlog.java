import java.util.ArrayDeque;

/** Leaks: a queue whose consumer takes one of three; what it takes is always the oldest. */
public class Backlog {
    static final ArrayDeque<byte[]> queue = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 900, i -> {
            queue.add(new byte[1500]); // LEAK
            if (i % 3 == 0) queue.poll();
        });
    }
}
