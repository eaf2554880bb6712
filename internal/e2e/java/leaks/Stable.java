import java.util.HashMap;
import java.util.Map;

/** No leak: a large heap that was there when the recording was young, read all the time and hardly changed. */
public class Stable {
    public static void main(String[] args) throws Exception {
        Map<Integer, long[]> all = new HashMap<>();
        for (int i = 0; i < 150_000; i++) all.put(i, new long[100]);
        Work.until(args, 2000, i -> {
            if (all.get(i % 150_000)[0] == 0 && i % 100 == 0) all.put(i % 150_000, new long[100]);
        });
        System.out.println(all.size());
        System.out.println("done");
    }
}
