package lifetimes

import (
	"math"
	"math/bits"
)

// binsPerOctave is how fine ages are distinguished.
const (
	binsPerOctave = 8
	firstBin      = 4 // ages below 2^firstBin words are one bin
	// Bins is the number of bins of age.
	Bins = (38 - firstBin) * binsPerOctave
)

// Bin gives the bin of an age in words. Bin 0 begins at age 0.
func Bin(age uint64) int {
	if age < 1<<firstBin {
		return 0
	}
	e := bits.Len64(age)
	f := float64(age<<(64-e)) * 0x1p-64
	return min(Bins-1, (e-1-firstBin)*binsPerOctave+octavePart(f)+1)
}

// octavePart places f, from 0.5 to 1, in its octave.
func octavePart(f float64) int {
	lo := 0
	for lo+1 < binsPerOctave && f >= steps[lo+1] {
		lo++
	}
	return lo
}

var steps = func() (s [binsPerOctave]float64) {
	for i := range s {
		s[i] = math.Exp2(float64(i)/binsPerOctave - 1)
	}
	return s
}()

// Edge gives the age, in words, at which bin i begins.
func Edge(i int) float64 {
	if i <= 0 {
		return 0
	}
	return math.Exp2(firstBin + float64(i-1)/binsPerOctave)
}

// Tally counts observed lifetimes: each lies between two ages. Its zero value is empty.
type Tally struct {
	// early are those of which only an upper bound is known, by its bin.
	early [Bins]float64
	// between are the others: lower bin<<16 | upper bin, which is Bins if there is none.
	between map[uint32]float64
}

// Add takes in weight lifetimes of more than lo and at most hi words (Never: no upper bound).
func (t *Tally) Add(lo, hi uint64, weight float64) {
	to := Bins
	if hi != Never {
		to = Bin(hi)
	}
	if lo == 0 && to < Bins {
		t.early[to] += weight
		return
	}
	if t.between == nil {
		t.between = map[uint32]float64{}
	}
	t.between[uint32(min(Bin(lo), to))<<16|uint32(to)] += weight
}

// Weight is the sum of all weights.
func (t *Tally) Weight() float64 {
	sum := 0.0
	for _, w := range t.early {
		sum += w
	}
	for _, w := range t.between {
		sum += w
	}
	return sum
}

// Curve is a lifetime distribution: Alive[i] is the share that lives longer than Edge(i). Alive[0] is 1.
type Curve struct {
	Alive [Bins + 1]float64
	// Reach is the last bin up to which deaths could be seen: beyond it the curve is flat because nothing is known.
	Reach int
}

// Curve gives the maximum likelihood estimate for interval-censored lifetimes (Turnbull 1976), on bins of age. With
// deaths that are known to one bin it is that of Kaplan and Meier.
func (t *Tally) Curve() *Curve {
	type cell struct {
		lo, hi int // mass may be in bins lo to hi; hi may be Bins
		w      float64
	}
	var cells []cell
	reach, last := 0, 0 // last is the last bin with a known death
	for hi, w := range t.early {
		if w > 0 {
			cells = append(cells, cell{0, hi, w})
			reach, last = max(reach, hi), max(last, hi)
		}
	}
	for k, w := range t.between {
		c := cell{int(k >> 16), int(k & 0xffff), w}
		cells = append(cells, c)
		if c.hi < Bins {
			reach, last = max(reach, c.hi), max(last, c.hi)
		} else {
			reach = max(reach, min(c.lo, Bins-1))
		}
	}
	out := &Curve{Reach: reach}
	total := 0.0
	for _, c := range cells {
		total += c.w
	}
	if total == 0 {
		for i := range out.Alive {
			out.Alive[i] = 1
		}
		return out
	}
	// Expectation maximisation: share each cell among its bins in proportion to the masses so far.
	var mass, next, sum [Bins + 2]float64
	// Bins after the last known death have no mass, or objects that nothing found dead would seem to die there.
	for i := 0; i <= last; i++ {
		mass[i] = 1 / float64(last+2)
	}
	mass[Bins] = 1 / float64(last+2)
	for range 400 {
		for i := 0; i <= Bins; i++ {
			sum[i+1] = sum[i] + mass[i]
		}
		var slope [Bins + 2]float64 // differences of what each bin's mass is multiplied with
		for _, c := range cells {
			if p := sum[c.hi+1] - sum[c.lo]; p > 0 {
				slope[c.lo] += c.w / p
				slope[c.hi+1] -= c.w / p
			}
		}
		change, factor := 0.0, 0.0
		for i := 0; i <= Bins; i++ {
			factor += slope[i]
			next[i] = mass[i] * factor / total
			change = max(change, math.Abs(next[i]-mass[i]))
		}
		mass = next
		if change < 1e-9 {
			break
		}
	}
	left := 1.0
	for i := range out.Alive {
		out.Alive[i] = max(0, left)
		if i <= Bins {
			left -= mass[i]
		}
	}
	return out
}

// At gives the share that lives longer than age words; between edges it is interpolated by the logarithm of the age.
func (c *Curve) At(age float64) float64 {
	if age < 1<<firstBin {
		return c.Alive[0] + (c.Alive[1]-c.Alive[0])*max(0, age)/(1<<firstBin)
	}
	x := (math.Log2(age)-firstBin)*binsPerOctave + 1
	i := int(x)
	if i >= Bins {
		return c.Alive[Bins]
	}
	return c.Alive[i] + (c.Alive[i+1]-c.Alive[i])*(x-float64(i))
}

// Quantile gives the age in words below which the share q dies; false if that is beyond what the recording shows.
func (c *Curve) Quantile(q float64) (float64, bool) {
	for i := 0; i < Bins; i++ {
		if c.Alive[i+1] <= 1-q && c.Alive[i] > c.Alive[i+1] {
			part := min(1, max(0, (c.Alive[i]-(1-q))/(c.Alive[i]-c.Alive[i+1])))
			return Edge(i) + part*(Edge(i+1)-Edge(i)), true
		}
	}
	return 0, false
}

// Draw gives the age at which an object dies that dies after lo and at most at hi: u, from 0 to 1, is where in the
// distribution between the two. Where the curve has no deaths there, all ages are equally likely.
func (c *Curve) Draw(lo, hi, u float64) float64 {
	a, b := c.At(lo), c.At(hi)
	if a-b < 1e-12 {
		return lo + u*(hi-lo)
	}
	want := a - u*(a-b)
	// The bin in which the curve falls to want.
	i, j := Bin(uint64(lo)), min(Bin(uint64(hi))+1, Bins)
	for i+1 < j {
		if m := (i + j) / 2; c.Alive[m] >= want {
			i = m
		} else {
			j = m
		}
	}
	x, y := max(lo, Edge(i)), min(hi, Edge(i+1))
	p, q := c.At(x), c.At(y)
	if p-q < 1e-15 || y <= x {
		return min(max(x, lo), hi)
	}
	part := min(1, max(0, (p-want)/(p-q)))
	if x < 1<<firstBin {
		return x + part*(y-x)
	}
	return x * math.Pow(y/x, part)
}
