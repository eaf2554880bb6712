import java.util.LinkedList;
import java.util.TreeMap;

/** No leak: offers by number in a tree, and in a list by age; after 45 % of the window they leave both. */
public class TtlLinked {
    record Offer(int number, double at, String text) { }

    static final TreeMap<Integer, Offer> offers = new TreeMap<>();
    static final LinkedList<Offer> ages = new LinkedList<>();

    public static void main(String[] args) throws Exception {
        double ttl = Double.parseDouble(args[0]) * 0.45;
        Work.until(args, 500, i -> {
            Offer o = new Offer(i, Work.seconds(), "offer " + "x".repeat(500) + i);
            offers.put(i, o);
            ages.add(o);
            while (ages.getFirst().at() < Work.seconds() - ttl) offers.remove(ages.removeFirst().number());
        });
    }
}
