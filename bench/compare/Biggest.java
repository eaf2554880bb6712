import java.io.File;
import java.util.List;
import org.graalvm.visualvm.lib.jfluid.heap.*;

/** Prints the objects that retain most in a heap dump, by VisualVM's heap library: address, retained bytes, class. */
public class Biggest {
    public static void main(String[] a) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(a[0]));
        List<Instance> l = heap.getBiggestObjectsByRetainedSize(Integer.parseInt(a[1]));
        for (Instance i : l) System.out.printf("%#x %d %s%n", i.getInstanceId(), i.getRetainedSize(), i.getJavaClass().getName());
    }
}
