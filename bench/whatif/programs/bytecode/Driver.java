import java.io.*;
import java.util.*;
import java.util.zip.*;
import org.objectweb.asm.*;
import org.objectweb.asm.tree.*;
import org.objectweb.asm.tree.analysis.*;

/** ASM reads every class of some jars N times, follows the data flow of each method, and writes the class again. A tenth of the trees stays. */
public class Driver {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime(), frames = 0, bytes = 0;
        ArrayDeque<ClassNode> kept = new ArrayDeque<>();
        for (int i = 0; i < n; i++) {
            for (int j = 1; j < a.length; j++) {
                try (ZipFile z = new ZipFile(a[j])) {
                    List<ZipEntry> es = new ArrayList<>(Collections.list((Enumeration<ZipEntry>) (Enumeration<?>) z.entries()));
                    es.sort(Comparator.comparing(ZipEntry::getName));
                    int k = 0;
                    for (ZipEntry e : es) {
                        if (!e.getName().endsWith(".class") || e.getName().endsWith("-info.class")) continue;
                        ClassNode c = new ClassNode();
                        try (InputStream in = z.getInputStream(e)) {
                            new ClassReader(in.readAllBytes()).accept(c, 0);
                        }
                        for (MethodNode m : c.methods) {
                            for (Frame<SourceValue> f : new Analyzer<>(new SourceInterpreter()).analyze(c.name, m)) if (f != null) frames++;
                        }
                        ClassWriter w = new ClassWriter(0);
                        c.accept(w);
                        bytes += w.toByteArray().length;
                        if (k++ % 10 == 0) kept.add(c);
                        if (kept.size() > 200) kept.poll();
                    }
                }
            }
        }
        System.out.println("frames=" + frames + " bytes=" + bytes);
        System.out.println("WORKLOAD bytecode n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
