import java.lang.ref.SoftReference;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** No leak: thumbnails by the number of a picture, softly held; the numbers of 25000 pictures stay. */
public class SoftThumbs {
    static final Map<Integer, SoftReference<byte[]>> thumbs = new HashMap<>();
    static final Random random = new Random(11);

    public static void main(String[] args) throws Exception {
        Work.until(args, 450, i -> {
            Integer picture = 1000 + random.nextInt(25000);
            SoftReference<byte[]> s = thumbs.get(picture);
            if (s == null || s.get() == null) thumbs.put(picture, new SoftReference<>(new byte[2200]));
        });
    }
}
