// Allocates some 20 MiB a second and keeps a little of it, for as long as it lives.
public class Churn {
    static final byte[][] kept = new byte[1000][];

    public static void main(String[] a) throws Exception {
        for (int i = 0; ; i++) {
            for (int k = 0; k < 200; k++) kept[(i * 7 + k) % kept.length] = new byte[1000 + k];
            Thread.sleep(10);
        }
    }
}
