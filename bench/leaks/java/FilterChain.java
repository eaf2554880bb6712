import java.util.function.UnaryOperator;

/** Leaks: each change of the routes wraps the handler once more; nobody takes the older filters out. */
public class FilterChain {
    static UnaryOperator<String> handler = s -> s;

    static UnaryOperator<String> with(UnaryOperator<String> next, String route, int[] weights) {
        return s -> s.startsWith(route) ? route + weights.length : s.isEmpty() ? next.apply(s) : s; // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, i -> {
            if (i % 4 == 0) handler = with(handler, "/shop/route/" + i, new int[600]); // LEAK
            handler.apply("x" + i);
        });
    }
}
