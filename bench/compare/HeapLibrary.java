import java.io.File;
import org.graalvm.visualvm.lib.jfluid.heap.Heap;
import org.graalvm.visualvm.lib.jfluid.heap.HeapFactory;
import org.graalvm.visualvm.lib.jfluid.heap.JavaClass;

/** Prints what VisualVM's heap library finds in a heap dump, as jcmd prints histograms: number, instances, bytes, class. */
public class HeapLibrary {
    public static void main(String[] a) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(a[0]));
        int n = 0;
        for (JavaClass c : heap.getAllClasses())
            if (c.getInstancesCount() > 0)
                System.out.printf("%4d: %13d %14d  %s%n", ++n, c.getInstancesCount(), c.getAllInstancesSize(), c.getName());
    }
}
