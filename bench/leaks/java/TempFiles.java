import java.io.File;

/** Leaks: uploads mark their files to be deleted when the JVM ends, which keeps each path until then. */
public class TempFiles {
    static int count;

    static void upload(int i) {
        File f = new File("/tmp/no-such/uploads/of/this/day/and/customer/" + (i * 7919L) + "/part-" + i + ".bin");
        f.deleteOnExit(); // LEAK
        count++;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            for (int k = 0; k < 6; k++) upload(6 * i + k); // LEAK
        });
        System.out.println("kept " + count * 190L);
    }
}
