import java.util.HashMap;

/** No leak: a large data set that is read at the start and fills three quarters of the heap. */
public class Tight {
    public static void main(String[] args) throws Exception {
        long max = Runtime.getRuntime().maxMemory();
        HashMap<Integer, String[]> data = new HashMap<>();
        for (int i = 0; i < max * 0.55 / 700; i++)
            data.put(i, new String[] {"name " + i, "x".repeat(450), "city " + i % 100});
        long[] n = {0};
        Work.until(args, 500, i -> n[0] += data.get(i % data.size()).length);
    }
}
