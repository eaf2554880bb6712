/** Starts processes while it churns. Argument: processes. */
public class Forker {
    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            Process p = new ProcessBuilder("/bin/sh", "-c", "exit 0").start();
            for (int j = 0; j < 100_000; j++) sink = new byte[j % 200];
            if (p.waitFor() != 0) throw new IllegalStateException("child failed");
        }
        System.gc();
        System.out.println("done");
    }
}
