import bsh.Interpreter;

/** BeanShell interprets a script N times: word counts, a sieve, and a tree that lives for ten rounds. */
public class Driver {
    static final String SCRIPT = String.join("\n",
        "count(String text) {", "  java.util.HashMap m = new java.util.HashMap();",
        "  java.util.StringTokenizer t = new java.util.StringTokenizer(text);",
        "  while (t.hasMoreTokens()) { String w = t.nextToken(); Object o = m.get(w); int c = o == null ? 0 : o; m.put(w, c + 1); }",
        "  return m;", "}",
        "sieve(int n) {", "  boolean[] no = new boolean[n]; int found = 0;",
        "  for (int i = 2; i < n; i++) { if (no[i]) continue; found++; for (int j = i + i; j < n; j += i) no[j] = true; }",
        "  return found;", "}",
        "tree(int depth) {", "  Object[] t = new Object[3]; t[2] = \"node \" + depth;",
        "  if (depth > 0) { t[0] = tree(depth - 1); t[1] = tree(depth - 1); }", "  return t;", "}");

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime(), words = 0, primes = 0;
        Interpreter b = new Interpreter();
        b.eval(SCRIPT);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 2000; i++) text.append("word").append(i * 31 % 257).append(' ');
        b.set("text", text.toString());
        Object[] trees = new Object[10];
        for (int i = 0; i < n; i++) {
            words += ((java.util.Map<?, ?>) b.eval("count(text)")).size();
            primes += (Integer) b.eval("sieve(2000)");
            trees[i % trees.length] = b.eval("tree(9)");
        }
        System.out.println("words=" + words + " primes=" + primes + " trees=" + trees.length);
        if (words != 257L * n || primes != 303L * n) throw new AssertionError();
        System.out.println("WORKLOAD beanshell n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
