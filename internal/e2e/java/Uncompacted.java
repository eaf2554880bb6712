/**
 * Fills old space, lets go one object in fifty, says "ready" and waits for a line, three times: a full collection then leaves regions as they are, in which nearly
 * all lives. Afterwards it lets go a third and allocates until those regions are collected. With a file as its argument it lets go and collects until that file is
 * there.
 */
public class Uncompacted {
    static volatile Object sink;

    static final class Node {
        final Object left;
        final int[] right;

        Node(Object left, int[] right) {
            this.left = left;
            this.right = right;
        }
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Object[] keep = new Object[300_000];
        for (int i = 0; i < keep.length; i++) keep[i] = new Node(i % 7 == 0 ? "s" + i : null, new int[i % 5]);
        System.gc();
        for (int n = 0; a.length > 0 && !new java.io.File(a[0]).exists(); n++) {
            for (int i = n % 50; i < keep.length; i += 50) keep[i] = null;
            System.gc();
            Thread.sleep(200);
            for (int i = n % 50; i < keep.length; i += 50) keep[i] = new Node(null, new int[i % 5]);
        }
        for (int round = 0; round < 3; round++) {
            for (int i = round; i < keep.length; i += 50) keep[i] = null;
            System.out.println("ready");
            if (System.in.read() < 0) break;
        }
        for (int i = 0; i < keep.length; i++) if (i % 3 == 0) keep[i] = null;
        for (int i = 0; i < 6_000_000; i++) {
            Object o = new Node(null, new int[i % 20]);
            if (i % 40 == 0) keep[(int) (i * 31L % keep.length)] = o;
            sink = o;
        }
        sink = keep;
        System.out.println("done");
    }
}
