case class Pair60(a: Array[Int], s: String)
object Beside60 {
  val kept = new Array[Any](20000)
  def make60(): Any = new Array[Int](60)
  def main(args: Array[String]): Unit = {
    val f = () => new Array[Int](61)
    var at = 0
    for (i <- 0 until args(0).toInt) {
      val o: Any = i % 3 match { case 0 => make60(); case 1 => f(); case _ => Pair60(new Array[Int](62), "x" + i).a }
      if (i % 8 == 0) { at = (at + 1) % kept.length; kept(at) = o }
    }
    println("done")
  }
}
