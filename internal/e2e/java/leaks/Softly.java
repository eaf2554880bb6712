import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;

/** No leak: a cache of soft references that is never full. */
public class Softly {
    static final Map<Integer, SoftReference<byte[]>> cache = new HashMap<>();

    public static void main(String[] args) throws Exception {
        Work.until(args, 600, i -> cache.put(i, new SoftReference<>(new byte[2000])));
    }
}
