import java.util.concurrent.CountDownLatch;

/**
 * ICPE'18 §5.3.1: a stack that forgets to clear what it pops. Push a million, pop all, then push and pop 100,000. A third argument makes it rest
 * so many milliseconds every 5,000 objects: when every allocation is a sample the probe's buffer needs the time.
 */
public class BuggyStack {
    static final class Item {
        long id;
        Item(long id) { this.id = id; }
    }

    static final class Stack {
        Object[] data = new Object[16];
        int size;

        void push(Object o) {
            if (size == data.length) {
                data = java.util.Arrays.copyOf(data, 2 * size);
            }
            data[size++] = o;
        }

        Object pop() {
            return data[--size]; // the bug: data[size] keeps the object
        }
    }

    static int rest;
    static volatile Object sink;

    static void rest(int i) throws InterruptedException {
        if (rest > 0 && i % 5000 == 0) {
            Thread.sleep(rest);
        }
    }

    static void fill(Stack s, int n) throws InterruptedException {
        for (int i = 0; i < n; i++) {
            s.push(new Item(i));
            rest(i);
        }
    }

    static void refill(Stack s, int n) throws InterruptedException {
        for (int i = 0; i < n; i++) {
            s.push(new Item(-i));
            rest(i);
        }
    }

    static void drain(Stack s, int n) {
        for (int i = 0; i < n; i++) {
            s.pop();
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]), m = Integer.parseInt(args[1]);
        rest = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        for (int i = 0; i < 256; i++) { // what a thread allocates before its first draw is not sampled
            sink = new byte[64 << 10];
        }
        Stack s = new Stack();
        System.gc(); // what is there before
        fill(s, n);
        System.gc(); // full
        drain(s, n);
        System.gc(); // empty, but all is kept
        refill(s, m);
        drain(s, m);
        System.gc(); // what was pushed again has replaced the first ones
        System.out.println("kept " + s.data.length);
        System.out.println("done");
    }
}
