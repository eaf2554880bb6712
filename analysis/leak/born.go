package leak

import (
	"math"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// A listing of references says of each object whether it is alive, and a heap state when it was born. Together they
// give the ages of all objects of a class and size, where samples are a few.

// Ages are the ages of all objects that a listing of references found alive.
type Ages struct {
	// At are the ends of spans of time that follow each other, in seconds of the stream; the last is the listing's.
	At []float64
	// Count gives by span how many live objects of some types were born in it, and their bytes, of those that have at
	// least and at most so many bytes. The types' ids are those of heap.Sample.Type.
	Count func(types map[uint64]bool, least, most uint64) (objects, bytes []float64)
}

const (
	bornOwn   = 4    // old samples of a site that say what size its objects have
	bornTaken = 20   // samples of it that survived a collection and would be old
	bornLeast = 200  // old objects that are alive
	bornEven  = 1.6  // times the mean that a third of the time has of them, or one part in so many, at most
	bornSure  = 60.0 // seconds of a window from which on it is a leak, and no suspect
	bornSpans = 5    // spans of the time that is looked at, at least
)

// bornSteadily looks for what stays does, with the ages of all objects of the site's class that are as large as its
// samples: of a site that allocates a few objects a second that stay, and many others that die, too few are samples.
// Most of these objects have to be of the site, by old samples of all sites.
func (h *detector) bornSteadily(r *heap.Cursor, c *candidate) {
	named := c.p <= significance && c.settled && !c.queued
	few := tooFew(c.why) || c.why == whyFreed || c.why == whyTurnover
	if h.Ages == nil || named || c.wide || !few || c.s.Taken == 0 || weakEntry(c.key.Class.Name) {
		return
	}
	x := h.curve(c.s)
	ages := h.newestAges()
	if ages == nil || len(x.floors) == 0 {
		return
	}
	last, from := ages.At[len(ages.At)-1], h.beginOf(c.s)
	if h.To-max(last, h.listedAt) > (h.To-h.From)/3 || h.keepsAge(c.s) {
		return
	}
	until := last - (last-from)/staysYoung
	old, taken, alive := h.ages(c.s, until), 0.0, 0.0
	for k := range old.taken {
		taken, alive = taken+old.taken[k], alive+old.alive[k]
	}
	if taken < bornTaken || c.why != whyTurnover && stats.BinomialAtMost(taken, alive, asMany) > significance {
		return
	}
	types, least, most, share := h.sizesOf(r, c, until)
	if share < ownsOfClass {
		return
	}
	objects, bytes := ages.Count(types, least, most)
	b, ok := h.steadily(ages.At, objects, from, until)
	if !ok {
		return
	}
	grown := 0.0
	for i := b.first; i < b.end; i++ {
		grown += share * bytes[i]
	}
	c.p, c.test, c.why, c.refuted = b.p, "ages of all objects of the class", whyNot, false
	c.settled, c.seeps, c.once, c.queued, c.floors = last-from >= bornSure, true, false, false, len(x.floors)
	c.grown, c.slope = grown, grown/b.span
	c.onset = [2]float64{from, from + (until-from)/growthParts}
	c.low, c.high = c.slope*b.low, c.slope*b.high
	c.exact, c.stayed, c.older = true, uint64(share*b.objects), last-until
}

// keepsAge says of a site whose older objects are dead whether the oldest that live are hardly older after the newest
// floor than after any one before, by time or by the bytes that the program allocated: as in a queue or cache that
// drops what has a certain age. In a queue whose consumer is too slow they are older each time.
func (h *detector) keepsAge(s *history.Series) bool {
	n := len(s.Aged)
	if n < 2 {
		return false
	}
	from, last := h.beginOf(s), s.Aged[n-1]
	for _, a := range slices.Backward(s.Aged[:n-1]) {
		if last.T-a.T < (last.T-from)/4 || a.T <= from {
			continue
		}
		for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
			was, now := clock(a.T)-clock(a.Oldest), clock(last.T)-clock(last.Oldest)
			before, whole := clock(a.T)-clock(from), clock(last.T)-clock(from)
			// no nearer to an age that grows as the time since the start does
			if before > 0 && now*before < was*(before+whole)/2 {
				return true
			}
		}
	}
	return false
}

// weakEntry says of a class of the JDK whether its objects are weak references, as the entries of a WeakHashMap: they
// live until a collection has found their objects dead and the map has looked, so their ages say nothing.
func weakEntry(class string) bool {
	return sites.Library(class) && (strings.HasPrefix(class, "java.lang.ref.") || strings.Contains(class, "Weak") ||
		class == "java.lang.ThreadLocal$ThreadLocalMap$Entry")
}

// sizesOf gives types and sizes of the old samples of a candidate, and of all old samples of these how many are its
// own; 0 if that is not known.
func (h *detector) sizesOf(r *heap.Cursor, c *candidate, until float64) (types map[uint64]bool, least, most uint64,
	share float64) {
	own, all := 0, 0
	types, least = map[uint64]bool{}, math.MaxUint64
	old := func(s *heap.Sample) bool { return float64(s.Time)/1e9 <= until && !h.Dead(s.ID) }
	for _, k := range c.keys() {
		h.bySite(r).of(k, func(s *heap.Sample) {
			if old(s) {
				own++
				types[s.Type] = true
				least, most = min(least, s.Size), max(most, s.Size)
			}
		})
	}
	if own < bornOwn {
		return nil, 0, 0, 0
	}
	for _, g := range h.bySite(r).groups {
		for _, s := range g.samples {
			if !types[g.typ] {
				break
			}
			if s.Size >= least && s.Size <= most && old(s) {
				all++
			}
		}
	}
	return types, least, most, float64(own) / float64(all)
}

// born is what lives of a time.
type born struct {
	first, end int // spans
	objects    float64
	span       float64 // seconds
	low, high  float64 // of its thirds, as shares of the mean
	p          float64 // that so many old ones live by chance, if they survive half as often as younger ones
}

// steadily says whether about as many of some objects live of each third of the time between from and until, by time
// or by the bytes that the program allocated.
func (h *detector) steadily(at, objects []float64, from, until float64) (b born, ok bool) {
	b.first, _ = slices.BinarySearch(at, from)
	b.first++ // a span that began before
	for b.end = b.first; b.end < len(at) && at[b.end] <= until; b.end++ {
		b.objects += objects[b.end]
	}
	if b.end-b.first < bornSpans || b.objects < bornLeast {
		return b, false
	}
	for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
		begin, end := clock(at[b.first-1]), clock(at[b.end-1])
		if end <= begin {
			continue
		}
		var third [3]float64
		for i := b.first; i < b.end; i++ {
			was, now := clock(at[i-1]), clock(at[i])
			if now <= was { // nothing was allocated by this clock
				third[min(2, int(3*(was-begin)/(end-begin)))] += 3 * objects[i] / b.objects
			}
			for k := range third { // evenly over the span
				x, y := begin+float64(k)*(end-begin)/3, begin+float64(k+1)*(end-begin)/3
				if part := min(now, y) - max(was, x); part > 0 {
					third[k] += 3 * objects[i] / b.objects * part / (now - was)
				}
			}
		}
		if b.low, b.high = slices.Min(third[:]), slices.Max(third[:]); b.low < 1/bornEven || b.high > bornEven {
			continue
		}
		early := (third[0] + third[1]/2) / 3 * b.objects
		b.span = at[b.end-1] - at[b.first-1]
		b.p = 2 * stats.BinomialAtMost(b.objects, b.objects-early, 1/(1+asMany))
		return b, b.p <= significance
	}
	return b, false
}

// bornFrom moves the onset of growth to where the oldest of its objects that live were born, if that is earlier: a
// curve of samples shows the first of them late. Before it there is hardly any, and from then on about as many all the
// time.
func (h *detector) bornFrom(r *heap.Cursor, s *structure) {
	if h.Ages == nil || s.exact || len(s.members) == 0 || h.late {
		return
	}
	ages := h.newestAges()
	if ages == nil {
		return
	}
	n := len(ages.At)
	c := candidate{key: s.members[0].key}
	types, least, most, share := h.sizesOf(r, &c, ages.At[n-1])
	if share < bornShare {
		return
	}
	objects, _ := ages.Count(types, least, most)
	sum := 0.0
	for i := n - 1; i > 0; i-- {
		sum += objects[i]
		mean, before := sum/float64(n-i), 0.0
		for _, x := range objects[:i] {
			before += x
		}
		if before > bornBefore*sum || objects[i] < mean/2 {
			continue
		}
		if at := ages.At[i-1]; sum >= bornLeast && at < s.onset[0] {
			s.onset = [2]float64{at, ages.At[i]}
		}
		return
	}
}

const (
	bornShare  = 0.9  // of old samples of a size that are of the site
	bornBefore = 0.03 // of the objects may be older than the onset
)

// newestAges are the ages at the newest listing of references; nil: not known.
func (h *detector) newestAges() *Ages {
	if n := len(h.listed); n > 0 && h.Ages != nil {
		return h.Ages(h.listed[n-1])
	}
	return nil
}

// oldShare is the part of a class's objects that are its oldest. Where these were born after the first oldGone of the
// time, the older objects are dead.
const (
	oldShare = 0.05
	oldGone  = 0.1
)

// classAges says what the ages of all objects of a class at the listings of references show: keeps, that the oldest are
// hardly older at the newest than at one before, as in a cache or queue that is full, or under a load that rises; gone,
// that the older objects are dead. known: there are two listings that say it. A birth is known to a collection, so the
// two ages may be too near to tell. Then it keeps its age unless near, the sites around, allocates as much late as
// early.
func (h *detector) classAges(types map[uint64]bool, near *history.Series) (keeps, gone, known bool) {
	if h.Ages == nil {
		return false, false, false
	}
	type point struct{ at, oldest, about float64 }
	var all []point
	for _, gc := range h.listed {
		if a := h.Ages(gc); a != nil {
			oldest := a.oldest(types)
			all = append(all, point{a.At[len(a.At)-1], oldest, h.phaseAt(oldest) + a.At[1] - a.At[0]})
		}
	}
	if len(all) < 2 {
		return false, false, false
	}
	last, from := all[len(all)-1], h.From
	gone = last.oldest-from > oldGone*(last.at-from)
	for _, a := range slices.Backward(all[:len(all)-1]) {
		if last.at-a.at < (last.at-from)/4 || a.at <= from {
			continue
		}
		sure := false
		for _, clock := range []func(float64) float64{h.clockTime, h.AllocatedAt} {
			was, now := clock(a.at)-clock(a.oldest), clock(last.at)-clock(last.oldest)
			before, whole := clock(a.at)-clock(from), clock(last.at)-clock(from)
			keeps = keeps || before > 0 && now*before < was*(before+whole)/2
			wasMost, nowLeast := clock(a.at)-clock(a.oldest-a.about), clock(last.at)-clock(last.oldest+last.about)
			wasLeast, nowMost := clock(a.at)-clock(a.oldest+a.about), clock(last.at)-clock(last.oldest-last.about)
			sure = sure || nowMost*before < wasLeast*(before+whole)/2 || nowLeast*before > wasMost*(before+whole)/2
		}
		if !sure && keeps {
			quarter := (last.at - from) / 4
			early, was := h.allocated(near, from, from+quarter)
			late, now := h.allocated(near, last.at-quarter, last.at)
			keeps = min(early, late) < evenLeast || now > evenLoad*was
		}
		return keeps, gone, true
	}
	return false, false, false
}

// evenLeast is how many samples of each of two times say whether a load rises, and evenLoad how many times as many of
// the later one say that it does.
const (
	evenLeast = 20
	evenLoad  = 1.25
)

// phaseAt is how long the phase between two collections was in which a time is.
func (h *detector) phaseAt(t float64) float64 {
	i, _ := slices.BinarySearch(h.Times, t)
	if i >= len(h.Times) {
		return 0
	} else if i == 0 {
		return h.Times[0] - h.From
	}
	return h.Times[i] - h.Times[i-1]
}

// oldest is when the oldest objects of some types were born: nearly all that live are younger.
func (a *Ages) oldest(types map[uint64]bool) float64 {
	objects, _ := a.Count(types, 0, math.MaxUint64)
	sum, old := 0.0, 0.0
	for _, n := range objects {
		sum += n
	}
	for i, n := range objects {
		if old += n; old >= oldShare*sum && i > 0 {
			return a.At[i-1]
		} else if old >= oldShare*sum {
			break
		}
	}
	return 0
}
