/** Holds some objects, lets go of them, and works before and after. Arguments: thousands of objects held, collections' worth of garbage. */
public class Swell {
    static Object[][] held;
    static volatile Object sink;

    static void work(int n) throws Exception {
        for (int i = 0; i < n; i++) {
            for (int k = 0; k < 20_000; k++) sink = new byte[1000];
            Thread.sleep(20);
        }
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]), rounds = Integer.parseInt(a[1]);
        held = new Object[n][];
        for (int i = 0; i < n; i++) {
            Object[] x = new Object[1000];
            for (int k = 0; k < x.length; k++) x[k] = new byte[24];
            held[i] = x;
        }
        System.gc();
        work(rounds);
        held = null;
        System.gc();
        work(rounds);
        System.out.println("done");
    }
}
