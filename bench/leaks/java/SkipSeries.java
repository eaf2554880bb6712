import java.util.concurrent.ConcurrentSkipListMap;

/** Leaks: values of sensors by time in a sorted map; the thread that should cut it dies at once. */
public class SkipSeries {
    static final ConcurrentSkipListMap<Long, double[]> series = new ConcurrentSkipListMap<>();

    static void measured(long at, double v) {
        series.put(at, new double[] {v, v * v, 1 / (1 + v), at}); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Thread cut = new Thread(() -> {
            long none = series.firstKey(); // NoSuchElementException
            series.headMap(none).clear();
        }, "cutter");
        cut.setUncaughtExceptionHandler((t, e) -> System.out.println("cutter: " + e));
        cut.start();
        Work.until(args, 400, i -> {
            for (int k = 0; k < 10; k++) measured(10L * i + k, i % 17); // LEAK
        });
        System.out.println("kept " + series.size() * 110L);
    }
}
