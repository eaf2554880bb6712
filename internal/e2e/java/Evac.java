/** Bursts of survivors that the rest of the heap cannot take: G1's evacuation fails. Arguments: milliseconds, percent kept, percent a burst. */
public class Evac {
    static volatile Object sink;

    static byte[][] fill(long bytes) {
        byte[][] b = new byte[(int) (bytes / 516)][];
        for (int i = 0; i < b.length; i++) b[i] = new byte[500];
        return b;
    }

    public static void main(String[] a) {
        long end = System.nanoTime() + Long.parseLong(a[0]) * 1_000_000;
        long max = Runtime.getRuntime().maxMemory();
        byte[][] kept = fill(max * Integer.parseInt(a[1]) / 100);
        int lost = 0;
        while (System.nanoTime() < end) {
            try {
                sink = fill(max * Integer.parseInt(a[2]) / 100);
            } catch (OutOfMemoryError e) {
                lost++;
            }
            sink = null;
        }
        sink = kept;
        System.out.println("bursts without room: " + lost);
        System.out.println("done");
    }
}
