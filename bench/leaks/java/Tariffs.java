import java.util.*;

/** Leaks until an OutOfMemoryError: calls in a list that nobody clears, beside a larger table that stays as it is. */
public class Tariffs {
    static final class Tariff {
        final long[] prices = new long[60];
        final String name;

        Tariff(int n) { name = "tariff " + n; }
    }

    static final class Call {
        final String from, to;
        final long[] marks = new long[50]; // LEAK

        Call(int n) {
            from = "+49 " + n; // LEAK
            to = "+44 " + n * 7; // LEAK
        }
    }

    static final TreeMap<Integer, Tariff> tariffs = new TreeMap<>();
    static final List<Call> unbilled = new LinkedList<>();

    public static void main(String[] args) throws Exception {
        long seconds = Long.parseLong(args[0]);
        for (int n = 0; n < 190_000; n++) tariffs.put(n, new Tariff(n));
        long end = System.nanoTime() + seconds * 1_000_000_000L, sum = 0;
        for (int n = 0; System.nanoTime() < end; n++) {
            for (int k = 0; k < 22; k++) {
                unbilled.add(new Call(n)); // LEAK
                sum += tariffs.get((n * 31 + k) % 190_000).prices[0];
            }
            for (int k = 0; k < 4; k++) sum += new byte[3000 + k].length;
            Thread.sleep(5);
        }
        System.out.println(sum);
    }
}
