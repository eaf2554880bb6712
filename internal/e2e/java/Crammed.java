import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;

/** Fills a heap nearly, with objects that die at random ages, until a file comes. Arguments: the file, how many live. */
public class Crammed {
    static final class Node {
        Object a, b;
        final byte[] data;

        Node(int n) {
            data = new byte[n];
        }
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        Path end = Path.of(a[0]);
        Node[] live = new Node[Integer.parseInt(a[1])];
        Random random = new Random(7);
        for (long i = 0; i % 4096 != 0 || !Files.exists(end); i++) {
            // What is replaced is old mostly. Some go in stretches, so that regions differ in what lives.
            int k = random.nextInt(live.length);
            if (i % 200_000 < 1000) k = (int) ((i / 200_000 * 1000 + i % 200_000) % live.length);
            Node n = new Node(random.nextInt(160));
            n.a = live[random.nextInt(live.length)] == null ? null : live[k] == null ? null : live[k].data;
            live[k] = n;
            if (random.nextInt(4) == 0) n.b = new int[random.nextInt(300)];
        }
        System.out.println("done");
    }
}
