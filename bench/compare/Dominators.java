import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.util.Iterator;
import org.graalvm.visualvm.lib.jfluid.heap.*;

/**
 * Writes the dominators that VisualVM's heap library finds in a heap dump: of each object and class its address, that
 * of its dominator (0: none) and its bytes. Arguments: the dump, the file to write.
 */
public class Dominators {
    public static void main(String[] a) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(a[0]));
        heap.getBiggestObjectsByRetainedSize(1); // makes the tree
        java.lang.reflect.Field tree = heap.getClass().getDeclaredField("domTree");
        tree.setAccessible(true);
        Object dominators = tree.get(heap);
        Method of = dominators.getClass().getDeclaredMethod("getIdomId", long.class);
        of.setAccessible(true);
        try (PrintStream p = new PrintStream(new BufferedOutputStream(new FileOutputStream(a[1])))) {
            for (Iterator<Instance> it = heap.getAllInstancesIterator(); it.hasNext();) put(p, it.next(), dominators, of);
            for (JavaClass c : heap.getAllClasses()) {
                Instance i = heap.getInstanceByID(c.getJavaClassId());
                if (i != null) put(p, i, dominators, of);
            }
        }
    }

    static void put(PrintStream p, Instance i, Object dominators, Method of) throws Exception {
        p.println(i.getInstanceId() + " " + of.invoke(dominators, i.getInstanceId()) + " " + i.getSize());
    }
}
