import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** No leak: the events of each of 30 accounts grow until a snapshot takes their place, after a quarter of the window. */
public class Aggregates {
    static final class Account {
        List<Object[]> events = new ArrayList<>();
        long balance;
        final int limit;

        Account(int limit) { this.limit = limit; }

        void apply(String kind, long amount) {
            balance += amount;
            events.add(new Object[] {kind + " of " + amount, new long[] {amount, balance}});
            if (events.size() >= limit) events = new ArrayList<>();
        }
    }

    static final Map<Integer, Account> accounts = new HashMap<>();
    static final Random random = new Random(8);

    public static void main(String[] args) throws Exception {
        int each = (int) (Double.parseDouble(args[0]) / 4 * 2000 / 30);
        Work.until(args, 500, i -> {
            for (int k = 0; k < 4; k++)
                accounts.computeIfAbsent(random.nextInt(30), n -> new Account(each / 2 + random.nextInt(each)))
                    .apply("payment " + i, random.nextInt(1000));
        });
    }
}
