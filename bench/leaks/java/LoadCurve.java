import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;

/** No leak: sessions of a twelfth of the window each; the load goes up and down twice, like a day's. */
public class LoadCurve {
    static final Map<Integer, Object[]> sessions = new HashMap<>();

    public static void main(String[] args) throws Exception {
        double end = Double.parseDouble(args[0]);
        Work.until(args, 400, i -> {
            double load = 0.5 - 0.5 * Math.cos(Work.seconds() / end * 4 * Math.PI);
            if (i % 10 < 10 * load) sessions.put(i, new Object[] {Work.seconds(), new byte[2000]});
            if (i % 100 == 0) {
                for (Iterator<Object[]> it = sessions.values().iterator(); it.hasNext();) {
                    if ((Double) it.next()[0] < Work.seconds() - end / 12) it.remove();
                }
            }
        });
    }
}
