import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.invoke.MethodHandles;

/**
 * Begins a loop that allocates Nodes each second, none of which ends: a loop goes on in the code that it began with. On
 * a byte of its input it begins no more, and defines classes with many sites of Nodes that never run. On the next it
 * ends.
 */
public class Stale {
    static class Node {
        Object a, b;
    }

    static final int CLASSES = 4, METHODS = 25, SITES = 100;
    static volatile boolean end;

    static void loop() {
        Object[] kept = new Object[5000];
        for (int i = 0; !end; i++) {
            kept[i % kept.length] = new Node(); // the only place that runs
            if (i % 500 == 0) sleep(1);
        }
    }

    static void sleep(int ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /** A class file whose methods have `new Node; pop`. */
    static byte[] never(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream o = new DataOutputStream(bytes);
        o.writeInt(0xcafebabe);
        o.writeInt(52);
        o.writeShort(9 + METHODS);
        String[] utf8 = {name, "java/lang/Object", "Stale$Node", "Code", "()V"}; // 1 to 5
        for (String s : utf8) {
            o.writeByte(1);
            o.writeUTF(s);
        }
        for (int i = 1; i <= 3; i++) { // 6 to 8
            o.writeByte(7);
            o.writeShort(i);
        }
        for (int i = 0; i < METHODS; i++) { // from 9 on
            o.writeByte(1);
            o.writeUTF("never" + i);
        }
        int[] head = {0x21, 6, 7, 0, 0, METHODS};
        for (int v : head) o.writeShort(v);
        for (int i = 0; i < METHODS; i++) {
            int[] method = {9, 9 + i, 5, 1, 4};
            for (int v : method) o.writeShort(v);
            o.writeInt(4 * SITES + 1 + 12);
            o.writeShort(1);
            o.writeShort(0);
            o.writeInt(4 * SITES + 1);
            for (int k = 0; k < SITES; k++) {
                o.writeByte(187);
                o.writeShort(8);
                o.writeByte(87);
            }
            o.writeByte(177);
            o.writeInt(0);
        }
        o.writeShort(0);
        return bytes.toByteArray();
    }

    public static void main(String[] a) throws Exception {
        while (System.in.available() == 0) {
            Thread t = new Thread(Stale::loop);
            t.setDaemon(true);
            t.start();
            sleep(1000);
        }
        System.in.read();
        for (int i = 0; i < CLASSES; i++) {
            MethodHandles.lookup().defineClass(never("Never" + i)).getDeclaredMethods();
        }
        System.out.println("defined");
        System.in.read();
        end = true;
        System.out.println("done");
    }
}
