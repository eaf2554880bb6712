
/** Two threads move a cloud of points, N steps each. A point is immutable, so each step makes new ones. */
public class Driver {
    static final class Vector {
        final double x, y, z;
        Vector(double x, double y, double z) { this.x = x; this.y = y; this.z = z; }
        Vector plus(Vector o) { return new Vector(x + o.x, y + o.y, z + o.z); }
        Vector times(double f) { return new Vector(x * f, y * f, z * f); }
        double length() { return Math.sqrt(x * x + y * y + z * z); }
    }
    static final class Point {
        final Vector at, speed;
        Point(Vector at, Vector speed) { this.at = at; this.speed = speed; }
        Point next() {
            double force = 0;
            for (int star = 1; star <= 12; star++) force += 1 / Math.sqrt(at.length() + star);
            Vector pull = at.times(-1e-4 * force);
            Vector v = speed.plus(pull);
            return new Point(at.plus(v), v);
        }
    }
    static final int CLOUD = 2000, INNER = 100;

    static double run(int seed, int n) {
        Point[] cloud = new Point[CLOUD];
        for (int i = 0; i < CLOUD; i++) cloud[i] = new Point(new Vector(i + seed, -i, 1), new Vector(0, 0, 0.01 * i));
        for (int step = 0; step < n * INNER; step++)
            for (int i = 0; i < CLOUD; i++) cloud[i] = cloud[i].next();
        double sum = 0;
        for (Point p : cloud) sum += p.at.length();
        return sum;
    }

    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[0]);
        long t0 = System.nanoTime();
        double[] sums = new double[2];
        Thread[] ts = new Thread[2];
        for (int t = 0; t < 2; t++) {
            int me = t;
            ts[t] = new Thread(() -> sums[me] = run(me, n));
            ts[t].start();
        }
        for (Thread t : ts) t.join();
        if (!(sums[0] > 0) || sums[0] == sums[1]) System.exit(1);
        System.out.println("WORKLOAD points n=" + n + " elapsed_ms=" + (System.nanoTime() - t0) / 1000000);
    }
}
