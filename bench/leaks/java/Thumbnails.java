import java.util.HashMap;
import java.util.Map;

/** Leaks few objects, but large ones: previews of 700 KB, of which one a second stays in a map. */
public class Thumbnails {
    static final Map<String, byte[]> previews = new HashMap<>();

    static byte[] render(int i, int size) {
        byte[] b = new byte[size]; // LEAK
        b[i % size] = 1;
        return b;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 200, i -> {
            byte[] b = render(i, i % 200 == 0 ? 700_000 : 70_000); // LEAK
            if (i % 200 == 0) previews.put("file " + i, b); // LEAK
        });
        System.out.println("kept " + previews.size() * 700_000L);
    }
}
