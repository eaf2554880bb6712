import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/** Leaks: each of four hundred chats has a transcript, a StringBuilder that nobody ever cuts. */
public class Transcripts {
    static final Map<Integer, StringBuilder> chats = new HashMap<>();
    static final Random random = new Random(11);

    static void say(int chat, String what) {
        chats.computeIfAbsent(chat, c -> new StringBuilder()) // LEAK
            .append(what).append('\n'); // LEAK
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 500, i -> {
            String text = "message " + i + " says that all is well, as ever, and so on";
            for (int k = 0; k < 8; k++) say(random.nextInt(400), text);
        });
        System.out.println("kept " + chats.values().stream().mapToLong(StringBuilder::capacity).sum());
    }
}
