import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Leaks: a channel for each client, with a direct buffer and its attributes on the heap; nobody removes them. */
public class DirectLeak {
    static final class Channel {
        final ByteBuffer buffer = ByteBuffer.allocateDirect(512); // LEAK
        final Map<String, String> attributes = new HashMap<>();

        Channel(int id) {
            for (int i = 0; i < 6; i++) attributes.put("attribute " + i, "of channel " + id); // LEAK
        }
    }

    static final List<Channel> open = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            open.add(new Channel(i)); // LEAK
        });
    }
}
