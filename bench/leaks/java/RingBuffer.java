/** No leak: the newest twenty thousand events in an array, written over in turn. */
public class RingBuffer {
    static final Object[] events = new Object[20000];

    public static void main(String[] args) throws Exception {
        Work.until(args, 700, i -> {
            for (int k = 0; k < 3; k++) events[(int) ((3L * i + k) % events.length)] = "event " + i + " of " + k;
        });
    }
}
