import java.util.ArrayList;
import java.util.LinkedList;

/** Leaks in two places, one ten times as fast as the other. */
public class TwoLeaks {
    static final ArrayList<byte[]> fast = new ArrayList<>();
    static final LinkedList<String> slow = new LinkedList<>();

    static void fast() { fast.add(new byte[3000]); } // LEAK

    static void slow(int i) {
        slow.add("slow " + i + " of these texts".repeat(17)); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 150, i -> {
            fast();
            slow(i);
        });
    }
}
