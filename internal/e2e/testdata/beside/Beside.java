package beside;

import java.io.InputStream;
import java.lang.invoke.MethodHandles;
import java.util.function.Supplier;

/** Allocates arrays of lengths 40 to 45, each at one place: in a method, in a lambda, in a hidden class, in a record, in
 * an enum and in an interface. Arguments: how many in all, and, if they are to be allocated by virtual threads, a word. */
public class Beside {
    static final Object[] KEPT = new Object[20000];

    record Box(int[] content) {
        Box {
            content = new int[43];
        }
    }

    enum Kind {
        A {
            @Override Object make() { return new int[44]; }
        };

        abstract Object make();
    }

    interface Maker {
        Object make();

        default Object other() { return new int[45]; }
    }

    static Object make40() { return new int[40]; }

    static Maker hidden() throws Exception {
        try (InputStream in = Beside.class.getResourceAsStream("Hidden.class")) {
            return (Maker) MethodHandles.lookup().defineHiddenClass(in.readAllBytes(), true).lookupClass()
                .getDeclaredConstructor().newInstance();
        }
    }

    public static void main(String[] a) throws Exception {
        Maker hidden = hidden();
        int n = Integer.parseInt(a[0]);
        if (a.length > 1) {
            Thread[] some = new Thread[4];
            for (int i = 0; i < some.length; i++)
                some[i] = (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class)
                    .invoke(null, (Runnable) () -> run(n / 4, hidden));
            for (Thread t : some) t.join();
        } else {
            run(n, hidden);
        }
        System.out.println("done");
    }

    static void run(int n, Maker hidden) {
        Supplier<Object> lambda = () -> new int[41];
        for (int i = 0, at = 0; i < n; i++) {
            Object o = switch (i % 6) {
                case 0 -> make40();
                case 1 -> lambda.get();
                case 2 -> hidden.make();
                case 3 -> new Box(null).content();
                case 4 -> Kind.A.make();
                default -> hidden.other();
            };
            if (i / 6 % 8 == 0) KEPT[at = (at + 1) % KEPT.length] = o;
            if (i % 5000 == 0) Thread.yield();
        }
    }
}

class Hidden implements Beside.Maker {
    public Object make() { return new int[42]; }
}
