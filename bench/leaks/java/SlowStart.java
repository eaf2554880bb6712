import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** No leak: an interpreter that starts slowly. It reads and compiles its program bit by bit, then runs it. */
public class SlowStart {
    interface Node { long run(long[] vars); }

    static final Map<String, Node> functions = new HashMap<>();
    static final Random random = new Random(9);

    static Node compile(int depth) {
        if (depth == 0) {
            int v = random.nextInt(16);
            return vars -> vars[v];
        }
        Node a = compile(depth - 1), b = compile(depth - 1);
        switch (random.nextInt(3)) {
            case 0: return vars -> a.run(vars) + b.run(vars);
            case 1: return vars -> a.run(vars) * b.run(vars);
            default: return vars -> a.run(vars) ^ b.run(vars);
        }
    }

    public static void main(String[] args) throws Exception {
        long[] vars = new long[16];
        long[] made = {0};
        Work.until(args, 100, i -> {
            // functions are compiled when they are first called: most early, a few late
            String f = "f" + (int) (Math.pow(random.nextDouble(), 3) * 400);
            Node n = functions.get(f);
            if (n == null) functions.put(f, n = compile(5));
            for (int k = 0; k < 50; k++) vars[k % 16] = n.run(vars) + made[0]++;
        });
    }
}
