/**
 * No leak: a pool of connections with buffers; they are replaced one by one when they have served a thousand
 * requests.
 */
public class Pool {
    static final class Conn {
        final byte[] in = new byte[32000];
        final byte[] out = new byte[32000];
        int served;
    }

    public static void main(String[] args) throws Exception {
        Conn[] pool = new Conn[100];
        Work.until(args, 700, i -> {
            int k = (i * 31 & 0x7fffffff) % 100;
            if (pool[k] == null || pool[k].served++ > 60) pool[k] = new Conn();
            pool[k].in[i % 32000]++;
        });
    }
}
