package leak

import (
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/trace"
)

// After a floor it is known which objects of a site live, and each sample has the time of its allocation. So the ages
// of what lives show whether a site keeps its objects: of a leak the old ones live as often as younger ones, of a cache
// or a queue that is full they are gone.

const (
	// turnedOver is how often those of the first third survive at least, as a share of those of the middle third, in a
	// structure that keeps its objects
	turnedOver = 0.75
	// asMany is the same in the null hypothesis of the test
	asMany = 0.5
	// cutOff is how long after its JVM a window begins whose begin is gone, in seconds
	cutOff = 2
	// slowChance is how rarely steady growth looks as if it slowed down
	slowChance = 0.02
	// steady is what share of the rate before the first of two floors there is between them, of what grows all the time
	steady = 0.7
	// fadeEach is how many entries of maps a quarter of the window has at most, as a share of those of the one before,
	// if a map fills up, fadeAll the same of the last and the first, and fadeLeast how many collections show it
	fadeEach, fadeAll = 0.92, 0.6
	fadeLeast         = 8
	outrunsChance     = 0.01 // how rarely so few of a site's samples come before a time, if they come as entries do
	fadeMore          = 0.05 // share of a site's samples that may come later than the entries of its map
)

// ages is what lives of a site's objects, by third of the time up to a floor.
type ages struct {
	taken, alive [3]float64
}

// settled gives the time of the newest floor, if at least half of the window lies before it.
func (h *detector) settled() (at float64, ok bool) {
	n := len(h.Floors)
	if n == 0 {
		return 0, false
	}
	at = h.Times[h.Floors[n-1]]
	return at, at-h.From >= (h.Times[len(h.Times)-1]-h.From)/2
}

// ages counts what was sampled in each third of the time from the site's first sample up to end and survived a
// collection, and what of it lives. Copies that a line makes and drops at once say nothing of what it keeps.
func (h *detector) ages(s *history.Series, end float64) (a ages) {
	from := h.beginOf(s) // a leak may begin late
	third := (end - from) / 3
	if third <= 0 {
		return a
	}
	for _, b := range s.Births {
		i := h.place(b.Gc)
		if i < 0 {
			continue
		}
		begin, last := h.From, h.Times[i]
		if i > 0 {
			begin = h.Times[i-1]
		}
		for k := range a.taken { // evenly over the phase
			x, y := max(begin, from+float64(k)*third), min(last, from+float64(k+1)*third)
			if y > x {
				a.taken[k] += b.Survived * (y - x) / max(last-begin, y-x)
			}
		}
	}
	for _, t := range s.Survived {
		if k := int((t - from) / third); k < 3 {
			a.alive[max(k, 0)]++
		}
	}
	for k := range a.alive {
		a.alive[k] = min(a.alive[k], a.taken[k])
	}
	return a
}

// place gives the place of the collection gc in the window, -1 if it is not in it.
func (h *detector) place(gc uint64) int {
	i := int(int64(gc) - int64(h.first))
	if i < 0 || i >= len(h.Times) {
		return -1
	}
	return i
}

// turnover says whether the old objects of a site are gone while younger ones live: known says that there are enough of
// them to tell.
func (a *ages) turnover() (yes, known bool) {
	if a.taken[0] < minSamples || a.taken[1] < minSamples || a.alive[1] == 0 {
		return a.alive[0] == 0 && a.alive[1] == 0 && a.taken[0]+a.taken[1] >= minSamples, false
	}
	return a.alive[0]/a.taken[0] < turnedOver*a.alive[1]/a.taken[1], true
}

// chance gives the probability that so many of the oldest objects live if they survive half as often as younger ones.
func (a *ages) chance() float64 {
	p := asMany * a.alive[1] / max(a.taken[1], 1)
	return stats.BinomialAtMost(a.taken[0], a.taken[0]-a.alive[0], 1-p)
}

// byFloors says whether a series grows from floor to floor as fast as it did before, as a queue does whose consumer is
// too slow: its old objects are gone, too.
func byFloors(t, v []float64, floors []int) bool {
	n := len(floors)
	if n < 2 {
		return false
	}
	last := floors[n-1]
	for _, f := range floors[:n-1] {
		if f == 0 || t[last]-t[f] < (t[last]-t[0])/4 || t[f] == t[0] {
			continue
		}
		before := (v[f] - v[0]) / (t[f] - t[0])
		return before > 0 && (v[last]-v[f])/(t[last]-t[f]) >= steady*before
	}
	return false
}

// fillsUp settles whether what lives grew from floor to floor, and says whether it slows down as a cache that fills up.
func (h *detector) fillsUp(g *growth, s *history.Series, c *curve, queue bool) (slows bool) {
	if h.entriesFade(s, c) {
		return true
	}
	if g.settled && !queue {
		g.settled, slows = h.between(s, c)
		g.once = !g.settled
	}
	if !g.settled {
		g.floors = 0
	}
	return slows
}

// between says what happened from a floor in the middle of the time to the newest one: grows, whether more lives, at
// about the rate of before. A cache that is not full yet grows up to any one floor, as a leak does. slows: what came
// between them is clearly less than what came before, by time and by the bytes that the program allocated, as in a
// cache that fills up.
func (h *detector) between(s *history.Series, c *curve) (grows, slows bool) {
	n := len(c.floors)
	if n < 2 {
		return false, false
	}
	last, from, mid, before := c.floors[n-1], h.beginOf(s), -1, 0.0
	if h.From > cutOff { // of a recording whose begin is gone: what had come until then says nothing of a rate
		from, before = max(from, c.t[0]), c.samples[0]
	}
	far := func(f int) float64 { return math.Abs(c.t[f] - (from+c.t[last])/2) }
	for _, f := range c.floors[:n-1] {
		if c.t[f] > from && c.t[last]-c.t[f] >= (c.t[last]-from)/4 && (mid < 0 || far(f) < far(mid)) {
			mid = f
		}
	}
	if mid < 0 || c.samples[mid]-before < minSamples {
		return false, false
	}
	was, now, at, until := c.samples[mid]-before, max(0, c.samples[last]-c.samples[mid]), c.t[mid], c.t[last]
	if x, ok := h.exact.between(from); ok {
		was, now, at, until = x.was, x.now, x.at, x.until
		if f := exactMost / (was + now); f < 1 { // the test below takes a step for each
			was, now = f*was, f*now
		}
	}
	if h.entriesSlow(s, c, c.t[mid], c.t[last]) {
		return false, false
	}
	slows = true
	for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
		begin, half, end := clock(from), clock(at), clock(until)
		if end <= begin { // not known
			continue
		}
		q := (end - half) / (end - begin)
		grows = grows || now*(1-q) >= steady*was*q
		slows = slows && stats.BinomialAtMost(was+now, now, q) < slowChance
	}
	return grows && now >= minSamples, slows && !grows
}

// entries gives the numbers of entries of the JDK's maps, by kind, which came as fast as the objects of a site. They
// are exact, where samples may be too few.
func (h *detector) entries(s *history.Series, c *curve) (all [][]float64) {
	n, k := len(h.Times), float64(s.LiveSamples)
	if len(h.tables.nodes) != n {
		return nil
	}
	grown, _ := h.held(s, c.t, envelope(c.v))
	for f := range softReferences {
		if !h.like(f, grown, c.t[len(c.t)-1]-c.t[0], k) {
			continue
		}
		v := make([]float64, n)
		for j := range v {
			v[j] = float64(h.tables.nodes[j][f])
		}
		all = append(all, envelope(v))
	}
	return all
}

// sweptMost is up to what share of the window swept looks for a full collection.
const sweptMost = 0.8

// swept gives the first full collection from collection i on after which the state is known, else i. A map that grew
// has made some of its entries anew, and the old ones count until then.
func (h *detector) swept(i int) int {
	n := min(len(h.Times), len(h.spaces), len(h.Live))
	for k := i; k < n && h.Times[k] <= h.From+sweptMost*(h.Times[n-1]-h.From); k++ {
		if h.spaces[k].kind == trace.PauseFull && h.Live[k] >= 0 {
			return k
		}
	}
	return i
}

// entriesSlow says whether the entries of maps that came as fast as the objects of a site came clearly slower after a
// time than before, by time and by the bytes that the program allocated. In a map of bounded keys ever more keys are
// there already. If the site's samples up to until came otherwise, the entries are of other maps.
func (h *detector) entriesSlow(s *history.Series, c *curve, at, until float64) bool {
	n := len(h.Times)
	i, _ := slices.BinarySearch(h.Times, at)
	if i == 0 || i >= n-1 {
		return false
	}
	i = h.swept(i)
	for _, v := range h.entries(s, c) {
		was, now, slow := v[i]-v[0], v[n-1]-v[i], true
		for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
			begin, mid, end := clock(h.Times[0]), clock(h.Times[i]), clock(h.Times[n-1])
			slow = slow && was > 0 && mid > begin && end > mid && now/(end-mid) < steady*was/(mid-begin)
		}
		if slow && !h.outruns(c, v, h.Times[i], until) {
			return true
		}
	}
	return false
}

// outruns says whether more of a site's samples came between two times than if they had come as entries v did.
func (h *detector) outruns(c *curve, v []float64, at, until float64) bool {
	if until <= at {
		return false
	}
	before := func(t, v []float64) (was, now float64) {
		was = interpolate(t, v, at)
		return was, max(0, interpolate(t, v, until)-was)
	}
	was, now := before(h.Times, v)
	samples, more := before(c.t, c.samples)
	was -= v[0]
	return was > 0 && stats.BinomialAtMost(samples+more, samples, was/(was+now)) < outrunsChance
}

// entriesFade says whether the entries of maps that came as fast as the objects of a site come slower in each quarter
// of the window than in the one before, by time and by the bytes that the program allocated: as in a map of bounded
// keys, which fills up. Those of a leak come as fast all the time, by one of the two.
func (h *detector) entriesFade(s *history.Series, c *curve) bool {
	n := len(h.Times)
	if n < fadeLeast {
		return false
	}
	for _, v := range h.entries(s, c) {
		fades := true
		for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
			at := make([]float64, n)
			for i, t := range h.Times {
				at[i] = clock(t)
			}
			before, first, last := v[0], 0.0, 0.0
			for q := range 4 {
				x := interpolate(at, v, at[0]+(at[n-1]-at[0])*float64(q+1)/4)
				d := x - before
				if q == 0 {
					first = d
				}
				fades = fades && d > 0 && (q == 0 || d <= fadeEach*last)
				before, last = x, d
			}
			fades = fades && last <= fadeAll*first
		}
		if fades && h.fadesWith(c, v) {
			return true
		}
	}
	return false
}

// fadesWith says whether the samples of a site may come as entries v do: hardly more of them are of the second half of
// the time. Else the entries are those of another map.
func (h *detector) fadesWith(c *curve, v []float64) bool {
	n := len(c.t)
	mid := (c.t[0] + c.t[n-1]) / 2
	late := func(t, v []float64) (share, all float64) {
		begin, end := interpolate(t, v, c.t[0]), interpolate(t, v, c.t[n-1])
		return (end - interpolate(t, v, mid)) / max(end-begin, 1), end - begin
	}
	of, _ := late(h.Times, v)
	share, samples := late(c.t, c.samples)
	return share <= of+fadeMore+3*math.Sqrt(of*(1-of)/max(samples, 1))
}

// queue says of a site whose older objects are dead whether it is a queue whose consumer is too slow: p is the
// probability that what floors left is as much more by chance. With one floor, the array that holds the objects says
// it, and nothing shows that they live.
func (h *detector) queue(g *growth, s *history.Series, c *curve, end float64) (p float64, grows bool) {
	last := c.floors[len(c.floors)-1]
	if byFloors(c.t, c.v, c.floors) {
		if len(c.floors) == 2 { // the contents of some caches vary
			g.settled, g.once = false, true
		}
		return min(1, fewPoints*gained([]float64{c.samples[c.floors[0]], c.samples[last]})), true
	}
	grows, g.open = h.outgrows(s, end)
	g.settled = false
	return gained([]float64{c.samples[0], c.samples[last]}), grows
}

// outgrows says whether an array that has room for what lives of a site at end, and not for much more, has grown when a
// structure that is full would not have: a cache or a queue that keeps its objects for so long is full once it is as
// old. open: the replay only counts, so that no lengths are known.
func (h *detector) outgrows(s *history.Series, end float64) (grows, open bool) {
	n, _ := slices.BinarySearch(s.Survived, end)
	if n < minSamples || s.Taken == 0 {
		return false, false
	}
	if h.counts {
		return true, true
	}
	age := end - s.Survived[n/50]
	if h.loadRose(s, end, age) {
		return false, false
	}
	full := h.beginOf(s) + lateFull*age
	live := float64(n) * s.Objects / s.Taken
	if live < leastNodes { // some array of that length grows in any program
		return false, false
	}
	for typ, a := range h.arrays {
		if f, table := h.tables.table[typ]; table && f >= 0 { // a hash table is no queue
			continue
		}
		for m := range a.seen {
			room := float64(m) // one array, not many small ones
			if room*slotsLess < live || room > mostRoom*live {
				continue
			}
			at, once := h.once(a, m, full)
			if !once || at == 0 || h.Times[at-1] < full {
				continue
			}
			// what grows evenly had filled the array before just then
			from := h.beginOf(s)
			least, most := live*(h.Times[at-1]-from)/(end-from), live*(h.Times[at]-from)/(end-from)
			if slices.ContainsFunc(lengthsBefore(a, m, at), func(y float64) bool {
				return y >= least/slotsLess && y <= most*slotsLess/loadFactor
			}) {
				return true, false
			}
		}
	}
	return false, false
}

// loadRose says whether a site allocates so much more in the newest span of an age than in its first that a structure
// which keeps its objects for so long has grown with the load.
func (h *detector) loadRose(s *history.Series, end, age float64) bool {
	from := h.beginOf(s)
	early, late := h.taken(s, from, from+age), h.taken(s, end-age, end)
	return early > 0 && late >= moreLoad*early
}

// taken is how many samples of a site were allocated between two times, as well as collections tell the time.
func (h *detector) taken(s *history.Series, from, to float64) float64 {
	n, _ := h.allocated(s, from, to)
	return n
}

// allocated gives these, and about how many bytes they stand for: the interval of sampling may have changed.
func (h *detector) allocated(s *history.Series, from, to float64) (n, bytes float64) {
	for _, b := range s.Births {
		i := h.place(b.Gc)
		if i < 0 {
			continue
		}
		begin, last := h.From, h.Times[i]
		if i > 0 {
			begin = h.Times[i-1]
		}
		if x, y := max(begin, from), min(last, to); y > x && last > begin {
			k := b.Taken * (y - x) / (last - begin)
			if n += k; i < len(h.every) {
				k *= h.every[i]
			}
			bytes += k
		}
	}
	return n, bytes
}

// lengthsBefore gives the lengths that were there before collection at, from which a library collection grows to m.
func lengthsBefore(a *lengths, m uint64, at int32) (all []float64) {
	for _, y := range before(m) {
		if b, ok := a.seen[y]; ok && b < at && step(y, m) {
			all = append(all, float64(y))
		}
	}
	return all
}

const (
	fewPoints = 10 // the probability of chance counts so many times where two floors say it
	mostRoom  = 3  // slots there are for an object of what has just grown, at most
	// times as many objects as before mean more load: an array grows by half, at least
	moreLoad = 1.5
	lateFull = 1.05 // of the age of what lives: then a structure of that size was full, surely
)

// beginOf gives when the phase began in which the first sample of a site was taken.
func (h *detector) beginOf(s *history.Series) float64 {
	if len(s.Births) > 0 {
		if i := h.place(s.Births[0].Gc); i > 0 {
			return h.Times[i-1]
		}
	}
	return h.From
}

// refloor draws a curve of what lives through what it is after each floor: what was garbage in between is taken off
// evenly, after the newest floor as before it.
func refloor(v []float64, floors []int) []float64 {
	out, from, kept := slices.Clone(v), 0, 1.0
	base := v[0]
	for _, f := range append(slices.Clone(floors), len(v)) {
		end := min(f, len(v)-1)
		if f < len(v) {
			gained := 0.0
			for i := from; i < f; i++ {
				gained = max(gained, v[i]-base)
			}
			if kept = 1; gained > 0 {
				kept = min(1, max(0, v[f]-base)/gained)
			}
		}
		for i := from; i <= end && i < f; i++ {
			out[i] = base + (v[i]-base)*kept
		}
		if f < len(v) {
			base, from = v[f], f+1
		}
	}
	return out
}

// lasting gives the curve of what lives at end by the time of its allocation, without the newest sixth: what is in use
// for a moment is there, too.
func (h *detector) lasting(s *history.Series, end float64) (t, v, samples []float64) {
	size := 0.0
	if s.Taken > 0 {
		size = s.Allocated / s.Taken
	}
	end -= (end - h.From) / growthParts
	n, k := 0.0, 0
	for i := range finePoints {
		x := h.From + (end-h.From)*float64(i)/(finePoints-1)
		for k < len(s.Survived) && s.Survived[k] <= x {
			n, k = n+1, k+1
		}
		t, v, samples = append(t, x), append(v, n*size), append(samples, n)
	}
	return t, v, samples
}
