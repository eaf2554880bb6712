import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Leaks a tenth of what an index takes that is loaded for the first half of the window: the tokens of logins. */
public class BesideIndex {
    static final Map<String, int[]> index = new HashMap<>();
    static final List<char[]> tokens = new ArrayList<>();

    static void load(int i, int n) {
        for (int k = 0; k < n; k++) index.put("word " + i + "/" + k, new int[] {i, k, i + k, 3, 4, 5, 6, 7, 8, 9});
    }

    static void login(int i) {
        char[] token = new char[300]; // LEAK
        token[0] = (char) i;
        tokens.add(token); // LEAK
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Work.until(args, 300, i -> {
            if (Work.seconds() < end / 2) load(i, 60);
            login(i);
            login(-i);
        });
        System.out.println("kept " + tokens.size() * 620L);
    }
}
