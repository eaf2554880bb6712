import java.util.concurrent.ConcurrentHashMap;

/** No leak: answers that expire after half of the window; a sweep a second removes what has expired. */
public class TtlMap {
    record Answer(double at, long[] data) { }

    static final ConcurrentHashMap<String, Answer> answers = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        double ttl = Double.parseDouble(args[0]) * 0.5;
        Work.until(args, 400, i -> {
            answers.put("question " + i, new Answer(Work.seconds(), new long[250]));
            if (i % 400 == 0) answers.values().removeIf(a -> a.at() < Work.seconds() - ttl);
        });
    }
}
