data class Pair50(val a: IntArray, val s: String)
val KEPT = arrayOfNulls<Any>(20000)
fun make50(): Any = IntArray(50)
fun main(args: Array<String>) {
    val f: () -> Any = { IntArray(51) }
    var at = 0
    for (i in 0 until args[0].toInt()) {
        val o: Any = when (i % 3) { 0 -> make50(); 1 -> f(); else -> Pair50(IntArray(52), "x$i") }
        if (i % 8 == 0) { at = (at + 1) % KEPT.size; KEPT[at] = if (o is Pair50) o.copy(s = "y").a else o }
    }
    println("done")
}
