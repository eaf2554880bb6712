import java.util.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.queryparser.classic.QueryParser;
import org.apache.lucene.search.*;
import org.apache.lucene.store.RAMDirectory;

/** Lucene writes an index of made texts in memory and searches it, N rounds. Every fourth round begins a new index. */
public class Driver {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime(), hits = 0;
        Random words = new Random(1);
        RAMDirectory dir = null;
        for (int r = 0; r < n; r++) {
            if (r % 4 == 0) dir = new RAMDirectory();
            IndexWriterConfig config = new IndexWriterConfig(org.apache.lucene.util.Version.LATEST, new StandardAnalyzer());
            config.setMergeScheduler(new SerialMergeScheduler());
            try (IndexWriter w = new IndexWriter(dir, config)) {
                for (int d = 0; d < 400; d++) {
                    StringBuilder text = new StringBuilder();
                    for (int i = 0; i < 120; i++) text.append("w").append((int) Math.abs(words.nextGaussian() * 900)).append(' ');
                    Document doc = new Document();
                    doc.add(new StringField("id", r + "/" + d, Field.Store.YES));
                    doc.add(new TextField("text", text.toString(), Field.Store.YES));
                    w.addDocument(doc);
                }
            }
            try (DirectoryReader in = DirectoryReader.open(dir)) {
                IndexSearcher s = new IndexSearcher(in);
                QueryParser p = new QueryParser("text", new StandardAnalyzer());
                for (int q = 0; q < 150; q++) {
                    for (ScoreDoc h : s.search(p.parse("w" + q + " AND w" + q * 2 + " OR \"w1 w" + q + "\""), 20).scoreDocs) {
                        hits += s.doc(h.doc).get("id").length();
                    }
                }
            }
        }
        System.out.println("hits=" + hits);
        if (hits == 0) throw new AssertionError();
        System.out.println("WORKLOAD lucene n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
