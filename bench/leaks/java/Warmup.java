import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;

/**
 * No leak: a program that warms up: regular expressions, formats and reflection, more kinds of them as time goes
 * on.
 */
public class Warmup {
    public static void main(String[] args) throws Exception {
        Map<String, Pattern> patterns = new ConcurrentHashMap<>();
        Random random = new Random(11);
        long[] sum = {0};
        Work.until(args, 200, i -> {
            int kind = (int) Math.min(300, -40 * Math.log(random.nextDouble()));
            String text = "(a" + kind + "|b)+c*[d-" + (char) ('e' + kind % 20) + "]";
            Pattern p = patterns.computeIfAbsent(text, Pattern::compile);
            if (p.matcher("a" + kind + "bbbcd").matches()) sum[0]++;
            sum[0] += String.format("%d of %s %08.3f", i, p, i / 3.0).length();
            sum[0] += Warmup.class.getDeclaredMethods().length;
        });
    }
}
