/** Leaks: a StringBuilder that only grows, a single array that doubles. */
public class Doubles {
    static final StringBuilder log = new StringBuilder();

    public static void main(String[] args) throws Exception {
        Work.until(args, 600, i -> log.append("request ").append(i).append(" took ").append(i % 77).append(" ms of ")
            .append(Work.seconds()).append('\n')); // LEAK
    }
}
