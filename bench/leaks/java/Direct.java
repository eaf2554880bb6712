import java.nio.ByteBuffer;

/** No leak on the heap: direct buffers that are kept. */
public class Direct {
    static final ByteBuffer[] kept = new ByteBuffer[1 << 20];

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            if (i % 10 == 0 && i / 10 < 3000) kept[i / 10] = ByteBuffer.allocateDirect(20000);
        });
    }
}
