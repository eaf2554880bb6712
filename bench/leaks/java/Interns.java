import java.util.ArrayList;
import java.util.List;

/** No leak: a parser that interns the names of each document, and forgets the document. */
public class Interns {
    static List<String> document;

    static void parse(int i) {
        List<String> names = new ArrayList<>();
        for (int k = 0; k < 30; k++) names.add(("element-" + i + "-" + k).intern());
        document = names;
    }

    public static void main(String[] args) throws Exception {
        Work.until(args, 400, Interns::parse);
    }
}
