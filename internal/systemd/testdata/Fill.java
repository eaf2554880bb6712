// Waits until it is recorded a while, then fills its heap.
public class Fill {
    static final java.util.List<byte[]> kept = new java.util.ArrayList<>();

    public static void main(String[] a) throws Exception {
        for (int i = 0; i < 100; i++) { // collections before the end
            for (int k = 0; k < 200; k++) kept.add(new byte[1000]);
            kept.clear();
            Thread.sleep(50);
        }
        for (;;) kept.add(new byte[10_000]);
    }
}
