import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;

/** Leaks at one of 65,536 sites that allocate and keep for a time. */
public class ManySites {
    static final int DEPTH = 16;
    static final Deque<byte[]> recent = new ArrayDeque<>();
    static final List<byte[]> kept = new ArrayList<>();
    static final Random random = new Random(5);

    static byte[] left(int path, int depth) { return depth == 0 ? new byte[400] : go(path, depth); }

    static byte[] right(int path, int depth) { return depth == 0 ? new byte[420] : go(path, depth); }

    static byte[] go(int path, int depth) {
        return (path >> depth & 1) == 0 ? left(path, depth - 1) : right(path, depth - 1);
    }

    static void forgotten() {
        kept.add(new byte[700]); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            for (int k = 0; k < 4; k++) recent.add(go(random.nextInt(1 << DEPTH), DEPTH));
            while (recent.size() > 4000) recent.poll();
            forgotten();
        });
    }
}
