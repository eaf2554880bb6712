import java.util.ArrayDeque;
import java.util.Map;
import java.util.TreeMap;

/** No leak: a tree of settings, read anew nine times in the window; the newest three versions are kept. */
public class ConfigTree {
    static final class Node {
        final Map<String, Node> children = new TreeMap<>();
        String value;
    }

    static final ArrayDeque<Node> versions = new ArrayDeque<>();

    static Node read(int version, int depth) {
        Node n = new Node();
        n.value = "value " + depth + " of version " + version;
        for (int i = 0; depth > 0 && i < 12; i++) n.children.put("setting-" + i, read(version, depth - 1));
        return n;
    }

    public static void main(String[] args) throws Exception {
        int every = (int) (Double.parseDouble(args[0]) * 400 / 9);
        Work.until(args, 400, i -> {
            if (i % every != 0) return;
            versions.addFirst(read(i / every, 4));
            if (versions.size() > 3) versions.removeLast();
        });
    }
}
