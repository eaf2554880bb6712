import java.util.concurrent.CountDownLatch;

/** ICPE'18 §5.3.1: a stack that forgets to clear what it pops. Push a million, pop all, then push and pop 100,000. */
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

    static void fill(Stack s, int n) {
        for (int i = 0; i < n; i++) {
            s.push(new Item(i));
        }
    }

    static void refill(Stack s, int n) {
        for (int i = 0; i < n; i++) {
            s.push(new Item(-i));
        }
    }

    static void drain(Stack s, int n) {
        for (int i = 0; i < n; i++) {
            s.pop();
        }
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[0]), m = Integer.parseInt(args[1]);
        Stack s = new Stack();
        System.gc();
        fill(s, n);
        System.gc();
        drain(s, n);
        System.gc();
        refill(s, m);
        drain(s, m);
        System.gc();
        System.out.println("READY " + s.data.length);
        if (args.length > 2) { // wait for whoever asks
            System.in.read();
        }
    }
}
