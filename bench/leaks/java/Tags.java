import java.util.*;

/** Leaks: texts that a StringBuilder makes stay in a static deque. */
public class Tags {
    static final Deque<String> recent = new ArrayDeque<>();
    static int longest;

    static String render(int n, int words) {
        StringBuilder b = new StringBuilder();
        for (int i = 0; i < words; i++) b.append("word").append(n * 31 + i).append(' ');
        return b.toString();
    }

    static void tag(int n) {
        String page = render(n, 200);
        longest = Math.max(longest, page.length());
        recent.addFirst(page.substring(100, 420).trim()); // LEAK
    }

    public static void main(String[] args) throws Exception {
        long end = System.nanoTime() + Long.parseLong(args[0]) * 1_000_000_000L;
        for (int n = 0; System.nanoTime() < end; n++) {
            for (int k = 0; k < 12; k++) tag(n + k);
            Thread.sleep(6);
        }
    }
}
