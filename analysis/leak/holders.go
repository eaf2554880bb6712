package leak

import (
	"slices"

	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// lengths says when arrays of a type first had a length.
type lengths struct {
	seen map[uint64]int32 // number of the collection
	rose map[uint64]rises // when there were more of them than ever before
	most []uint64         // the greatest length so far, where it changes
	at   []int32
	now  map[uint64]uint64 // how many there are after the newest collection
}

// rises are the collections after which there were more arrays of one length than after any before, of the first few.
type rises struct {
	most uint64 // arrays at one time
	at   []int32
}

// fewArrays of one length: with more, one more of them says nothing.
const fewArrays = 16

// Arrays of references shorter than leastArray hold too little to leak; of a type with more than maxLengths lengths no
// one asks for steps.
const (
	leastArray = 20
	maxLengths = 1 << 14
)

// linked are the classes of the JDK's linked collections, which hold what is put into them without any array, and what
// else holds objects like them.
var linked = map[string]bool{
	"java/util/LinkedList$Node":                         true,
	"java/util/TreeMap$Entry":                           true,
	"java/util/concurrent/ConcurrentSkipListMap$Node":   true,
	"java/util/concurrent/ConcurrentLinkedQueue$Node":   true,
	"java/util/concurrent/ConcurrentLinkedDeque$Node":   true,
	"java/util/concurrent/LinkedBlockingQueue$Node":     true,
	"java/util/concurrent/LinkedBlockingDeque$Node":     true,
	"java/util/concurrent/LinkedTransferQueue$Node":     true,
	"java/util/concurrent/LinkedTransferQueue$DualNode": true,
	// the JVM holds a thread that has not ended, and each object with a finalizer that has not run
	"java/lang/ref/Finalizer": true, "java/lang/Thread": true, "java/lang/VirtualThread": true,
	// dependents of a future that is not complete
	"java/util/concurrent/CompletableFuture$UniAccept":        true,
	"java/util/concurrent/CompletableFuture$UniApply":         true,
	"java/util/concurrent/CompletableFuture$UniCompose":       true,
	"java/util/concurrent/CompletableFuture$UniExceptionally": true,
	"java/util/concurrent/CompletableFuture$UniHandle":        true,
	"java/util/concurrent/CompletableFuture$UniRelay":         true,
	"java/util/concurrent/CompletableFuture$UniRun":           true,
	"java/util/concurrent/CompletableFuture$UniWhenComplete":  true,
	"java/util/concurrent/CompletableFuture$CoCompletion":     true,
}

// containers looks for arrays of references that are longer than those before, and counts the nodes of linked
// collections.
func (h *detector) containers(r *heap.Cursor, i int) {
	nodes := uint64(0)
	for typ, n := range r.Totals.PerType() {
		is, ok := h.node[uint32(typ)]
		if !ok && n.Objects > 0 {
			is = linked[r.Types[uint64(typ)].Name]
			h.node[uint32(typ)] = is
		}
		if is {
			nodes += n.Objects
		}
		if n.Objects > 0 {
			h.tables.count(r.Symbols, uint32(typ), n.Objects)
		}
	}
	h.nodes[i] = nodes
	st, follows := r.Totals.(*heap.State)
	if !follows {
		return
	}
	for _, a := range h.arrays {
		clear(a.now)
	}
	st.Lengths(func(typ uint32, n, objects uint64) {
		if n > 0 {
			h.tables.length(r.Symbols, typ, n, objects)
		}
		if n < leastArray || r.Types[uint64(typ)].Flags&trace.TypeObjArray == 0 {
			return
		}
		a := h.arrays[typ]
		if a == nil {
			a = &lengths{seen: map[uint64]int32{}, rose: map[uint64]rises{}, now: map[uint64]uint64{}}
			h.arrays[typ] = a
		}
		if k := len(a.most); k == 0 || a.most[k-1] < n {
			a.most, a.at = append(a.most, n), append(a.at, int32(i))
		}
		if _, ok := a.now[n]; ok || len(a.now) < maxLengths {
			a.now[n] = objects
		}
		x, ok := a.rose[n]
		if !ok && len(a.rose) == maxLengths {
			return
		}
		if !ok {
			a.seen[n] = int32(i)
		}
		if objects > x.most {
			if x.most = objects; len(x.at) < fewArrays {
				x.at = append(x.at, int32(i))
			}
			a.rose[n] = x
		}
	})
}

// watch says from when on a window's holders must have grown: from its first eighth on, or its first collection if that
// is later.
func (h *detector) watch() (early float64) {
	n := len(h.Times)
	return max(h.From+(h.Times[n-1]-h.From)/8, h.Times[0])
}

// holderGrows says whether what holds the objects of a series may have grown with it all through the window. What a
// full cache or queue drops grows in old space, too, as long as that is not collected; the table of the cache does
// not, while that of a leak must grow with it:
//   - an array of references, the longest of its type, is three times as long as after an eighth of the window, and
//     longer than after two fifths of it; or it is of a length that there was not before, in the steps of library
//     collections (half as long again, twice as long), and all of that length have room for what the site gained; or it
//     has become three times as long in such steps;
//   - or linked nodes hold them: those of the JDK's linked collections are three times as many at the end as after a
//     quarter of it, and half as many again as after half; or no array is there that could hold what was seen alive at
//     one time.
//
// Less growth can be expected of a window in which the series grew less, as one that was pulled later. If it has not
// even doubled nothing follows from it, and the answer is true; but a window that began with its JVM, in which the
// first collections came late, must show some, and so must the recording of a JVM that was attached to: what is added
// there may take the place of what was there before, whose deaths no sample shows.
//
// Where the replay only counts there are no lengths of arrays: then open says that it rests on these, and that it has
// said true for want of them.
func (h *detector) holderGrows(s *history.Series, t, low []float64) (grows, open bool) {
	n := len(h.Times)
	early := h.watch()
	factor := h.factor(t, low, early)
	need, since := min(3, factor/2), 0.4 // what doubles has doubled since then, with a little to spare
	switch {
	case factor < 2 && !h.late && h.From > quietLeast:
		return true, false
	case factor < 2:
		need, since = 1.2, 0
	case factor < 6:
		since = 0 // one step is all, whenever it was
	}
	grown, atOnce := h.held(s, t, low)
	if yes, open := h.replaced(grown, t[len(t)-1]-t[0], float64(s.LiveSamples)); yes || open {
		return open, open
	}
	from, w := h.From, h.Times[n-1]-h.From
	after := max(early, from+since*w)
	if len(h.nodes) == n {
		at := func(t float64) uint64 {
			i, _ := slices.BinarySearch(h.Times, t)
			return h.nodes[max(i-1, 0)]
		}
		if last := h.nodes[n-1]; last > 100 && float64(last) >= need*float64(at(max(early, from+w/4))) &&
			(factor < 6 || 2*last >= 3*at(max(early, from+w/2))) {
			return true, false
		}
	}
	if h.counts {
		return true, true
	}
	if atOnce > 0 && !h.room(atOnce) {
		return true, false
	}
	for _, a := range h.arrays {
		first, half, last := uint64(0), uint64(0), a.most[len(a.most)-1]
		for k, m := range a.most {
			if t := h.Times[a.at[k]]; t <= after {
				half = m
				if t <= early {
					first = m
				}
			}
		}
		if last > half && float64(last) >= need*float64(first) && half > 0 && slotsLess*float64(last) >= grown {
			return true, false
		}
		for m, at := range a.seen {
			if h.Times[at] > from+0.875*w && h.each(a, m, at) {
				return true, false
			}
			new, once := h.once(a, m, early)
			if !once {
				continue
			}
			if new > 0 && h.Times[new-1] >= after && float64(m*a.now[m])*slotsLess >= grown && a.steps(m, new) {
				return true, false
			}
			if h.Times[new] > after && h.longer(a, m, new, early, need) {
				return true, false
			}
		}
	}
	return false, false
}

// slotsLess is how many objects of a site there may be for one slot of an array: they are estimates.
const slotsLess = 1.25

// held estimates how many objects a series gained in the window, and how many of them were seen alive at once: those of
// the longest time between two collections.
func (h *detector) held(s *history.Series, t, low []float64) (grown, atOnce float64) {
	if s.Objects == 0 {
		return 0, 0
	}
	gap, last := 0.0, h.From
	for _, t := range h.Times {
		gap, last = max(gap, t-last), t
	}
	grown = (low[len(low)-1] - low[0]) / (s.Allocated / s.Objects)
	return grown, grown * gap / (t[len(t)-1] - t[0])
}

// room says whether there are arrays of references of one type and length that n objects fit into.
func (h *detector) room(n float64) bool {
	for _, a := range h.arrays {
		for m, k := range a.now {
			if float64(m*k) >= n {
				return true
			}
		}
	}
	return false
}

// once gives the collection after which there was an array of length m, as one that grows through it makes it: the
// first one, or, where others had that length early, one more than ever. It is false if there is none, or if there were
// more and more of them: what is built anew again and again, the old ones dead, makes that too. But several that grow
// alike get there within half the time that it took the first.
func (h *detector) once(a *lengths, m uint64, early float64) (at int32, ok bool) {
	first, x := a.seen[m], a.rose[m]
	late := h.Times[first] > early
	if len(x.at) == 0 || x.most > fewArrays {
		return first, late
	}
	last := x.at[len(x.at)-1]
	i := slices.IndexFunc(x.at, func(i int32) bool { return h.Times[i] > early })
	if i < 0 {
		return 0, false
	}
	if t := h.Times[x.at[i]]; h.Times[last]-t > max((t-h.From)/2, (h.Times[len(h.Times)-1]-h.From)/8) {
		return 0, false
	}
	if late {
		return first, true
	}
	return last, true
}

// steps says whether length m is a step of a library collection from one that was there before collection at.
func (a *lengths) steps(m uint64, at int32) bool {
	for _, y := range before(m) {
		if b, ok := a.seen[y]; ok && b < at && step(y, m) {
			return true
		}
	}
	return false
}

// before are the lengths from which a collection may have grown to m, if step says so.
func before(m uint64) [4]uint64 { return [...]uint64{(2*m + 2) / 3, 2 * m / 3, m / 2, (m - 2) / 2} }

// step says whether collections grow from y to m: by half, or to double size (and 2).
func step(y, m uint64) bool { return y > 0 && (y+y/2 == m || 2*y == m || 2*y+2 == m) }

// longer says whether a library collection has grown to length m, need times as long as before: by half, or to double
// size (and 2), in each step. Lengths that there were early say nothing: others have them, too.
func (h *detector) longer(a *lengths, m uint64, at int32, early, need float64) bool {
	factor := 1.0
next:
	for factor < need {
		for _, y := range before(m) {
			if _, ok := a.seen[y]; !ok || !step(y, m) {
				continue
			}
			b, once := h.once(a, y, early)
			if !once || b >= at && h.Times[a.seen[y]] <= early {
				m = y // nothing shows whether it grew through this one
				continue next
			}
			if b < at {
				factor *= float64(m) / float64(y)
				m, at = y, b
				continue next
			}
		}
		return false
	}
	return true
}

// each says whether length m is the newest of an array that is copied with each addition: in each quarter of the window
// it had the length that a steady growth from the JVM's start would give it.
func (h *detector) each(a *lengths, m uint64, at int32) bool {
	w := h.Times[len(h.Times)-1] - h.From
	rate := float64(m) / h.Times[at]
	quarter := func(i int32) int { return min(3, int(4*(h.Times[i]-h.From)/w)) }
	var quarters, seen [4]int
	for i := range h.Times {
		quarters[quarter(int32(i))]++
	}
	sum := 0
	for n, i := range a.seen {
		if d := float64(n) / h.Times[i] / rate; d > 0.85 && d < 1.15 {
			seen[quarter(i)]++
			sum++
		}
	}
	for q, n := range quarters {
		if n > 0 && seen[q] == 0 {
			return false
		}
	}
	return sum >= fewestPoints
}
