import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

/** Fills the metaspace, so that collections come for its sake (run with a small -XX:MetaspaceSize). Argument: classes. */
public class Meta {
    public static class Filler {
        public String text() {
            return "some code, so that the class needs room: " + hashCode();
        }
    }

    static final class Loader extends ClassLoader {
        Class<?> define(byte[] b) {
            return defineClass("Meta$Filler", b, 0, b.length);
        }
    }

    static volatile Object sink;

    public static void main(String[] a) throws Exception {
        byte[] code;
        try (InputStream in = Meta.class.getResourceAsStream("Meta$Filler.class")) {
            code = in.readAllBytes();
        }
        List<Object> kept = new ArrayList<>();
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            kept.add(new Loader().define(code).getDeclaredConstructor().newInstance());
            if (i % 3 == 0) kept.remove(kept.size() / 2);
        }
        sink = kept;
        System.out.println("done");
    }
}
