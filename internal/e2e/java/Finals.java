import java.lang.management.ManagementFactory;
import javax.management.ObjectName;

/** Holds 1000 objects whose finalizer is empty, and prints how many objects are registered for finalization. */
public class Finals {
    @Override
    protected void finalize() {}

    public static void main(String[] a) throws Exception {
        Finals[] some = new Finals[1000];
        for (int i = 0; i < some.length; i++) some[i] = new Finals();
        String rows = (String) ManagementFactory.getPlatformMBeanServer().invoke(
            new ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram",
            new Object[] {new String[0]}, new String[] {String[].class.getName()});
        long held = 0, registered = 0;
        for (String row : rows.split("\n")) {
            String[] f = row.trim().split("\\s+");
            if (f.length < 4) continue;
            if (f[3].equals("Finals")) held = Long.parseLong(f[1]);
            if (f[3].equals("java.lang.ref.Finalizer")) registered = Long.parseLong(f[1]);
        }
        System.out.println("held " + held + " registered " + (registered < 500 ? "few" : registered));
        System.out.println(some[999] != null ? "done" : "?");
    }
}
