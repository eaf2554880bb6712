import java.util.ArrayDeque;

/** Leaks: an undo list of whole copies of a document that is never cut. */
public class Undo {
    static final ArrayDeque<char[]> undo = new ArrayDeque<>();

    public static void main(String[] args) throws Exception {
        char[] document = new char[2000];
        Work.until(args, 300, i -> {
            document[i % 2000]++;
            if (i % 2 == 0) undo.push(document.clone()); // LEAK
        });
    }
}
