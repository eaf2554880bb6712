import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/** Leaks: documents are softly held, but their names and what describes them stay in the map for ever. */
public class SoftKeys {
    record Info(String title, int[] words, SoftReference<byte[]> text) { }

    static final Map<String, Info> infos = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            String name = "document " + i + " of the archive"; // LEAK
            infos.put(name, new Info(name.substring(2), new int[200], new SoftReference<>(new byte[1000]))); // LEAK
        });
    }
}
