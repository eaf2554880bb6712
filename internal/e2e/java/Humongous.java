import java.util.Random;

/** Large arrays beside small objects; in G1 with small regions each large one is humongous. Argument: rounds. */
public class Humongous {
    static volatile Object sink;

    public static void main(String[] a) {
        Object[] held = new Object[6];
        Random r = new Random(1);
        for (int i = Integer.parseInt(a[0]); i > 0; i--) {
            held[r.nextInt(held.length)] = r.nextBoolean() ? new byte[600_000 + r.nextInt(3_000_000)] : new Object[150_000 + r.nextInt(300_000)];
            for (int j = 0; j < 3000; j++) sink = new int[20];
        }
        System.out.println("done");
    }
}
