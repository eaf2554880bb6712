import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.lang.ref.SoftReference;
import java.lang.ref.WeakReference;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Holds and drops objects in every way, by single letters that it reads: f fills, t tags all objects with their
 * addresses, s writes which tags are left into the next file, e ends it. In between all its threads wait. The class of
 * an object says how it is held. Arguments: the library of native/tags.c, a prefix of files, any third one for virtual
 * threads. Prints its pid first.
 */
public class Dying {
    static class Node {
        Object a, b;
    }

    // How an object is held; the one behind it is held in the same way.
    static class Planted {
        Node behind = new Node();
    }

    static class Dead extends Planted {}

    static class DeadRing extends Planted {}

    static class StronglyHeld extends Planted {}

    static class SoftlyHeld extends Planted {}

    static class WeaklyHeld extends Planted {}

    static class PhantomHeld extends Planted {}

    static class WeakGlobal extends Planted {}

    static class Global extends Planted {}

    static class Local extends Planted {}

    static class OnStack extends Planted {}

    static class OfVirtual extends Planted {}

    static class OfYoungVirtual extends Planted {}

    static class OfDeadVirtual extends Planted {}

    static class Final extends Planted {
        @Override
        @SuppressWarnings({"deprecation", "removal"})
        protected void finalize() {
            behind = null; // an empty one would be left out by the JVM
        }
    }

    static native long tag();

    static native void survivors(String file);

    static native void hold(Object global, Object weakGlobal);

    static native void block(Object[] box);

    static native void release();

    static final Random random = new Random(1);
    static Node[] nodes = new Node[20_000];
    static final List<Object> held = new ArrayList<>();
    static final ReferenceQueue<Object> queue = new ReferenceQueue<>();
    static final List<Object> virtual = new ArrayList<>();
    static Method startVirtual;

    static boolean park(CountDownLatch ready, Object o) {
        Object mine = o;
        ready.countDown();
        LockSupport.park();
        return mine.hashCode() == 0;
    }

    // A virtual thread that waits below some frames and holds o in one of them.
    static boolean deep(int n, CountDownLatch ready, Object o) {
        return n == 0 ? park(ready, o) : deep(n - 1, ready, o) | n > 1000;
    }

    static Object parked(Object o) throws Exception {
        if (startVirtual == null) return null;
        CountDownLatch ready = new CountDownLatch(1);
        Thread t = (Thread) startVirtual.invoke(null, (Runnable) () -> deep(random.nextInt(20), ready, o));
        ready.await();
        while (t.getState() != Thread.State.WAITING) Thread.onSpinWait();
        return t;
    }

    // A graph that changes all the time, so that garbage and what lives refer to each other in both directions.
    static void change() {
        for (int i = 0; i < 30_000; i++) {
            Node n = new Node();
            n.a = nodes[random.nextInt(nodes.length)];
            Node other = nodes[random.nextInt(nodes.length)];
            n.b = random.nextInt(4) == 0 ? new byte[random.nextInt(200)] : random.nextInt(4) == 0 ? "node " + i : other;
            if (other != null && random.nextInt(3) == 0) other.b = n;
            nodes[random.nextInt(nodes.length)] = n;
            if (i % 1000 == 0) nodes[random.nextInt(nodes.length)] = null;
        }
        for (int i = 0; i < nodes.length; i += 3) nodes[random.nextInt(nodes.length)] = null;
    }

    static void fill(int round) throws Exception {
        for (Object t : virtual) if (t != null && random.nextInt(2) == 0) LockSupport.unpark((Thread) t);
        virtual.clear();
        change();
        if (startVirtual != null) {
            for (int i = 0; i < 5; i++) virtual.add(parked(new OfVirtual()));
            parked(new OfDeadVirtual());
        }
        if (round % 2 == 0) System.gc();
        change();
        for (int i = 0; i < 20; i++) {
            new Dead();
            DeadRing first = new DeadRing(), second = new DeadRing();
            first.behind.a = second;
            second.behind.a = first;
            held.add(new StronglyHeld());
            held.add(new SoftReference<>(new SoftlyHeld()));
            held.add(new WeakReference<>(new WeaklyHeld()));
            held.add(new PhantomReference<>(new PhantomHeld(), queue));
            new Final();
        }
        if (startVirtual != null) virtual.add(parked(new OfYoungVirtual()));
        hold(new Global(), new WeakGlobal());
        new String(new char[5000 + round]).intern(); // nothing else refers to it
    }

    public static void main(String[] a) throws Exception {
        System.out.println("pid " + ProcessHandle.current().pid());
        System.load(a[0]);
        try {
            if (a.length > 2) startVirtual = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            // before 21
        }
        Thread blocked = new Thread(() -> block(new Object[] {new Local()}));
        blocked.start();
        OnStack mine = new OnStack();
        System.out.println("ready");
        for (int round = 0, c; (c = System.in.read()) != 'e' && c >= 0; ) {
            if (c == 'f') fill(++round);
            if (c == 't') System.out.println("tagged " + tag());
            if (c == 's') survivors(a[1] + round);
            System.out.println("did " + (char) c + round);
        }
        release();
        blocked.join();
        Reference.reachabilityFence(mine);
        System.out.println("done");
        System.exit(0);
    }
}
