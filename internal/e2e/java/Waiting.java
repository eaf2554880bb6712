import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Holds objects in many ways, then waits with all its threads until a line can be read: its heap does not change in
 * between. Prints its pid, "ready", and "done" last.
 */
public class Waiting {
    static final class Node {
        Node next;
        Object payload;

        Node(Node next, Object payload) {
            this.next = next;
            this.payload = payload;
        }
    }

    static final Map<Integer, byte[]> cache = new HashMap<>();
    static final Map<String, Map<Integer, long[]>> nested = new ConcurrentHashMap<>();
    static final List<Object> listeners = new ArrayList<>();
    static final ArrayDeque<Object> queue = new ArrayDeque<>();
    static final LinkedBlockingQueue<Object> linked = new LinkedBlockingQueue<>();
    static final TreeMap<Integer, String> tree = new TreeMap<>();
    static final ThreadLocal<List<Object>> local = new ThreadLocal<>();
    static final List<SoftReference<Object>> soft = new ArrayList<>();
    static final List<WeakReference<Object>> weak = new ArrayList<>();
    static Node chain;
    static volatile Object sink;

    static void fill() {
        Object[] shared = new Object[4000];
        for (int i = 0; i < shared.length; i++) shared[i] = new long[i % 32];
        for (int i = 0; i < 20_000; i++) {
            cache.put(i, new byte[i % 200]);
            nested.computeIfAbsent("shard " + i % 16, k -> new HashMap<>()).put(i, new long[i % 16]);
            queue.add("request " + i);
            if (i % 100 == 0) linked.add(new Object[] {shared[i % shared.length], i});
            tree.put(i, "value " + i);
            if (i % 100 == 0) chain = new Node(chain, i % 3 == 0 ? shared[i % shared.length] : new int[i % 50]);
            if (i % 10 == 0) soft.add(new SoftReference<>(new byte[500]));
            if (i % 10 == 0) weak.add(new WeakReference<>(shared[i % shared.length]));
            if (i % 5 == 0) sink = new Object[] {queue.peekLast(), cache.get(i)}; // garbage that refers to what lives
        }
        for (int k = 0; k < 8; k++) {
            List<Object> l = new ArrayList<>();
            for (int i = 0; i < 1000; i++) l.add(i % 2 == 0 ? shared[i] : "listener " + i);
            listeners.add(l);
        }
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        fill();
        CountDownLatch filled = new CountDownLatch(4), over = new CountDownLatch(1);
        for (int t = 0; t < 4; t++) {
            int n = t;
            new Thread(() -> {
                List<Object> mine = new ArrayList<>(), onStack = new ArrayList<>();
                for (int i = 0; i < 2000 * (n + 1); i++) {
                    mine.add(new int[i % 40]);
                    onStack.add("local " + i);
                }
                local.set(mine);
                filled.countDown();
                try {
                    over.await();
                } catch (InterruptedException e) {
                    return;
                }
                sink = onStack;
            }).start();
        }
        filled.await();
        System.out.println("ready");
        System.in.read();
        over.countDown();
        System.out.println("done");
    }
}
