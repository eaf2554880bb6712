import java.util.ArrayDeque;

/** Leaks: from three tenths of the window on its backend is down, and what could not be sent waits without limit. */
public class RetryQueue {
    static final class Message {
        final String topic;
        final byte[] payload;
        int tries;

        Message(String topic, byte[] payload) {
            this.topic = topic;
            this.payload = payload;
        }
    }

    static final ArrayDeque<Message> waiting = new ArrayDeque<>();
    static boolean down;

    static void send(Message m) {
        m.tries++;
        if (down) waiting.addLast(m); // LEAK
    }

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Work.until(args, 500, i -> {
            down = Work.seconds() > 0.3 * end;
            send(new Message("orders." + i % 9, new byte[700 + i % 300])); // LEAK
            if (i % 50 == 0) for (int k = 0; k < 20 && !waiting.isEmpty(); k++) send(waiting.pollFirst());
        });
    }
}
