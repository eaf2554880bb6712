import java.util.HashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Leaks: subscribers of an event bus of a library are never removed; what they hold is small, the buffers in
 * them are not.
 */
public class Bus {
    static final class EventBus {
        final Map<String, Set<Object>> byTopic = new TreeMap<>();

        void subscribe(String topic, Object who) { byTopic.computeIfAbsent(topic, t -> new HashSet<>()).add(who); }
    }

    static final class Screen {
        final char[] text;
        final List<int[]> lines = new LinkedList<>();

        Screen(int n) {
            text = new char[n]; // LEAK
            for (int i = 0; i < 5; i++) lines.add(new int[30]); // LEAK
        }
    }

    public static void main(String[] args) throws Exception {
        EventBus bus = new EventBus();
        Work.until(args, 400, i -> bus.subscribe("topic " + i % 20, new Screen(200 + i % 100))); // LEAK
    }
}
