/** Allocates at the very end of its stack, again and again. Argument: rounds. */
public class Deep {
    static volatile Object sink;
    static int overflows;

    static int down(int n) {
        sink = new byte[16];
        return down(n + 1) + 1;
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        for (int i = 0; i < Integer.parseInt(a[0]); i++) {
            try {
                down(0);
            } catch (StackOverflowError e) {
                overflows++;
            }
        }
        System.out.println(overflows == Integer.parseInt(a[0]) ? "done" : "wrong");
    }
}
