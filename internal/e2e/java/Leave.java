import java.util.ArrayList;
import java.util.List;

/**
 * Fills its heap, and ends as the argument says: "exit" and "halt" with status 7, "oom" by filling the heap whole.
 */
public class Leave {
    static List<Object> all = new ArrayList<>();

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        int rounds = Integer.parseInt(a[1]);
        for (int i = 0; ; i++) {
            all.add(new Object[] {new int[8], Integer.toString(i)});
            if (i < rounds) continue;
            if (a[0].equals("exit")) System.exit(7);
            if (a[0].equals("halt")) Runtime.getRuntime().halt(7);
        }
    }
}
