/** Holds so many thousand small objects until its input ends: a heap to be read in several ways. */
public class Big {
    static Object keep;

    static final class Pair {
        final Object left;
        final Object right;

        Pair(Object left, Object right) {
            this.left = left;
            this.right = right;
        }
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Object[][] all = new Object[1000][Integer.parseInt(a[0])];
        for (Object[] row : all)
            for (int i = 0; i < row.length; i++)
                row[i] = i % 4 == 0 ? new byte[i % 40] : i % 4 == 1 ? new Pair(row[i - 1], null) : i % 4 == 2 ? Integer.valueOf(i + 1000) : new long[i % 7];
        keep = all;
        System.gc();
        System.gc();
        System.out.println("ready");
        System.in.read();
        System.out.println("done");
    }
}
