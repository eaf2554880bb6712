import java.nio.ByteBuffer;
import java.util.ArrayDeque;

/** No leak: direct buffers of uploads, each of which lives for a sixth of the window; the heap holds small objects only. */
public class DirectChurn {
    record Upload(String name, ByteBuffer buffer, long[] parts) { }

    static final ArrayDeque<Upload> open = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        int most = (int) (Double.parseDouble(args[0]) / 6 * 200);
        Work.until(args, 600, i -> {
            if (i % 3 != 0) return;
            open.add(new Upload("upload-" + i, ByteBuffer.allocateDirect(4000), new long[70]));
            if (open.size() > most) open.poll();
        });
    }
}
