/** No leak: a ring of the newest log lines. */
public class BoundedLog {
    public static void main(String[] args) throws Exception {
        String[] ring = new String[20000];
        Work.until(args, 900, i -> {
            for (int k = 0; k < 2; k++) ring[(2 * i + k) % ring.length] = "line " + i + " of the log, " + "with some text ".repeat(4);
        });
    }
}
