/** System.gc() in a loop, with objects that live across a few of them. Argument: rounds. */
public class Collect {
    static volatile Object sink;

    public static void main(String[] a) {
        Object[][] ages = new Object[5][];
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            Object[] os = new Object[20_000];
            for (int j = 0; j < os.length; j++) os[j] = j % 3 == 0 ? new int[j % 20] : "s" + j;
            ages[i % ages.length] = os;
            if (i % 2 == 0) for (int j = 0; j < os.length; j += 2) os[j] = null;
            System.gc();
        }
        sink = ages;
        System.out.println("done");
    }
}
