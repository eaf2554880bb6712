import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.invoke.MethodHandles;

/** Has a class with many constants that are not equal to themselves, and allocates until it gets a byte of input. */
public class Nans {
    static final int CONSTANTS = 9000;
    static Object last;

    static byte[] nans() throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream o = new DataOutputStream(bytes);
        o.writeInt(0xcafebabe);
        o.writeInt(52);
        o.writeShort(5 + CONSTANTS);
        for (String s : new String[] {"NansOnly", "java/lang/Object"}) { // 1 and 2
            o.writeByte(1);
            o.writeUTF(s);
        }
        for (int i = 1; i <= 2; i++) { // 3 and 4
            o.writeByte(7);
            o.writeShort(i);
        }
        for (int i = 0; i < CONSTANTS; i++) {
            o.writeByte(4);
            o.writeInt(0x7fc00000 + i);
        }
        for (int v : new int[] {0x21, 3, 4, 0, 0, 0, 0}) o.writeShort(v);
        return bytes.toByteArray();
    }

    public static void main(String[] a) throws Exception {
        MethodHandles.lookup().defineClass(nans()).getDeclaredMethods();
        System.out.println("ready");
        while (System.in.available() == 0) {
            for (int i = 0; i < 1000; i++) last = new int[100];
            Thread.sleep(1);
        }
        System.out.println("done");
    }
}
