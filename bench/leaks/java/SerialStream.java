import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.io.Serializable;

/** Leaks: a stream of serialized events is never reset, so it remembers each event that it has written. */
public class SerialStream {
    static final class Event implements Serializable {
        final long at;
        final String what;
        final double[] values = new double[20]; // LEAK

        Event(int i) {
            at = i;
            what = "event number " + i; // LEAK
        }
    }

    static ObjectOutputStream out;
    static int count;

    static void publish(int i) throws Exception {
        out.writeObject(new Event(i)); // LEAK
        count++;
    }

    public static void main(String[] args) throws Exception {
        out = new ObjectOutputStream(OutputStream.nullOutputStream());
        Work.until(args, 1000, i -> publish(i)); // LEAK
        System.out.println("kept " + count * 290L);
    }
}
