class Beside70 {
  static Object[] kept = new Object[20000]
  static Object make70() { return new int[70] }
  static void main(String[] a) {
    def f = { new int[71] }
    int at = 0
    int n = a[0] as int
    for (int i = 0; i < n; i++) {
      def o = i % 2 == 0 ? make70() : f()
      if (i % 8 < 2) { at = (at + 1) % kept.length; kept[at] = o }
    }
    println "done"
  }
}
