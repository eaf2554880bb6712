package leak

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// What makes a heap full: shares of its maximum that are used after full collections.
const (
	fullAlone  = 0.92 // after one
	fullStorm  = 0.85 // after stormLeast of the newest few
	fullFailed = 0.7  // with an allocation that failed
	leastFills = 0.1  // share of the late growth of the heap that a data structure that fills it has
	leastPart  = 0.02 // and that its parts have, at least
	copes      = 60   // seconds
	// largeWeight is how many objects a sample of large ones stands for at most, and largeShare what share of what a
	// structure has such objects are, if few samples are enough
	largeWeight, largeShare = 1.1, 0.9
)

// spaceUse is how much of the heap is used after a collection.
type spaceUse struct {
	gc     uint64
	kind   uint64
	used   uint64
	futile bool // the second full one in a row that made no room for an allocation
}

// tells says whether a collection of this kind shows how much of the heap has to stay: a full one, or with a concurrent
// collector the end of a cycle. It counts what was allocated meanwhile, too, which is little in a heap that is full.
func (h *detector) tells(kind uint64) bool {
	return kind == trace.PauseFull || h.watched && (kind == trace.PauseMajor || kind == trace.PauseMinor)
}

// findFull looks for the first collection that found the heap full.
func (h *detector) findFull(r *heap.Cursor) {
	h.full = nil
	limit := float64(r.JVM.MaxHeap)
	if limit <= 0 {
		return
	}
	failed := func(from, to float64) bool {
		return slices.ContainsFunc(r.Exhausted, func(x trace.Exhausted) bool {
			t := float64(x.Time) / 1e9
			return t >= from && t <= to
		})
	}
	storm := 0
	for i, x := range h.spaces {
		if !h.tells(x.kind) {
			continue
		}
		use := float64(x.used) / limit
		switch {
		case x.kind == trace.PauseMinor: // what it leaves of old space may be garbage
		case use < fullStorm, h.watched && use < fullAlone:
			storm = 0
		default:
			storm++
		}
		until := h.Times[len(h.Times)-1] + 60
		if n := slices.IndexFunc(h.spaces[i+1:], func(x spaceUse) bool { return h.tells(x.kind) }); n >= 0 {
			until = h.Times[i+1+n]
		}
		e := ui.Flow("")
		switch {
		case use >= fullFailed && failed(h.Times[i], until):
			e = "an allocation failed"
		case use >= fullFailed && x.futile:
			e = "two full collections in a row made no room for an allocation"
		case use >= fullAlone && !h.watched: // one cycle may have begun late
			e = "a full collection freed hardly anything"
		case storm >= stormLeast && h.watched && h.full == nil:
			e = "one cycle after another freed hardly anything"
		case storm >= stormLeast && !h.watched:
			e = "full collections followed one another"
		default:
			continue
		}
		h.full = &Full{Time: collection.Wall(r.Symbols, uint64(h.Times[i]*1e9)), GC: x.gc, UsedBytes: x.used,
			MaxBytes: r.JVM.MaxHeap, Evidence: e, at: i}
		// An allocation that fails later shows it better: more samples are watched by then.
		if !h.watched || failed(h.Times[i], until) {
			break
		}
	}
	if h.full == nil {
		h.findLarge(r)
		return
	}
	// Does it stay so? The newest collection of old space says it, or the newest of all.
	last := h.spaces[len(h.spaces)-1]
	for _, x := range slices.Backward(h.spaces) {
		if h.tells(x.kind) || x.kind == trace.PauseRemark {
			last = x
			break
		}
	}
	h.full.UntilEnd = float64(last.used) >= fullFailed*limit
}

// findLarge looks for an allocation that failed while much of the heap was free: one object was larger than that. A
// program that goes on well for long has coped with it.
func (h *detector) findLarge(r *heap.Cursor) {
	if len(h.Times) == 0 {
		return
	}
	for _, x := range r.Exhausted {
		if h.Times[len(h.Times)-1]-float64(x.Time)/1e9 > copes {
			continue
		}
		i, exact := slices.BinarySearch(h.Times, float64(x.Time)/1e9)
		if !exact {
			i--
		}
		if i < 0 {
			continue
		}
		h.full = &Full{Time: collection.Wall(r.Symbols, x.Time), GC: h.spaces[i].gc, UsedBytes: h.spaces[i].used,
			MaxBytes: r.JVM.MaxHeap, Large: true, at: i,
			Evidence: ui.Flowf("an allocation failed while %s of %s was used, so it was for one large object",
				ui.Flow(ui.Bytes(h.spaces[i].used)), ui.Flow(ui.Bytes(r.JVM.MaxHeap)))}
		return
	}
}

// level is how many bytes lived after a collection, as well as that is known.
func (h *detector) level(i int) float64 {
	if h.Live[i] >= 0 {
		return h.Live[i]
	}
	return float64(h.spaces[i].used)
}

// before gives the collection from which on the heap filled up: the newest one before it was full that left no more
// than half of what was added since the least.
func (h *detector) before() int {
	least, top := h.level(0), h.level(h.full.at)
	for i := range h.full.at {
		least = min(least, h.level(i))
	}
	for i := h.full.at; i >= 0; i-- {
		if h.level(i) <= (least+top)/2 {
			return i
		}
	}
	return -1
}

// fills names what filled a heap that was full, by how much of it: growth up to then counts, however long the program
// went on. What is there then has outlived a full collection.
func (h *detector) fills(r *heap.Cursor, x *heads) []*structure {
	if h.full == nil {
		return nil
	}
	at, since := h.full.at, h.before()
	by := map[string]*structure{}
	var all []*structure
	young := map[*history.Series]float64{}
	if h.full.UntilEnd || h.full.Large { // some had no time to survive two collections
		h.YoungLive(r.Symbols, func(s *history.Series, y *heap.Sample) { young[s] += float64(y.Size) * y.Weight })
	}
	sum, large := 0.0, map[sites.Key]uint64{}
	if at == len(h.Times)-1 {
		large = h.largeLive(r)
	}
	done := h.doneBefore(x, at, since)
	for _, k := range slices.SortedFunc(maps.Keys(h.Sites), sites.Key.Compare) { // sums of floats, always in one order
		s := h.Sites[k]
		var then, now, n float64
		for i, c := range s.At {
			if int(c) <= since {
				then += s.Bytes[i]
			}
			if int(c) <= at {
				now += s.Bytes[i]
				n += float64(s.Samples[i])
			}
		}
		if at == len(h.Times)-1 {
			now += young[s]
		}
		if now <= 0 {
			continue
		}
		sum += now
		if done[k] {
			continue
		}
		head := x.of(k.Frame)
		g := by[head]
		if g == nil {
			g = &structure{head: head, fills: true}
			g.survives, g.settled, g.test = 1, true, "share of a full heap"
			by[head] = g
			all = append(all, g)
		}
		g.grown += now
		g.late += now - then
		g.samples += n
		g.large += float64(large[k])
		g.put(r.Symbols, k, s, now-then, now)
	}
	live := h.level(at)
	scale := 1.0
	if sum > live {
		scale = live / sum
	}
	late := 0.0
	for _, g := range all {
		late += max(0, g.late)
	}
	w := h.Times[at] - h.From
	if since >= 0 {
		w = h.Times[at] - h.Times[since]
	}
	slices.SortFunc(all, func(a, b *structure) int {
		return cmp.Or(cmp.Compare(b.late, a.late), cmp.Compare(a.head, b.head))
	})
	// Many methods may fill one map, none of them with much.
	all = h.byHolder(slices.DeleteFunc(all, func(g *structure) bool { return g.late < leastPart*late }))
	all = slices.DeleteFunc(all, func(g *structure) bool {
		return g.late < leastFills*late || g.late < leastFills*live ||
			g.samples < minSamples && g.large < largeShare*g.grown
	})
	for _, g := range all {
		h.fill(g, scale, w, live)
	}
	slices.SortStableFunc(all, func(a, b *structure) int { return cmp.Compare(b.late, a.late) })
	return all
}

// largeLive gives the bytes of live objects by site, each of which is so large that it is a sample by itself.
func (h *detector) largeLive(r *heap.Cursor) map[sites.Key]uint64 {
	by := map[sites.Key]uint64{}
	for id, s := range r.Live.All() {
		if s.Weight <= largeWeight && !h.Dead(id) {
			by[h.Key(r.Symbols, s)] += s.Size
		}
	}
	return by
}

// gain is how many samples a site got since the heap began to fill up, while the newest half of what was added came,
// and while the newest quarter did.
type gain [3]float64

// doneBefore gives the sites that had stopped to grow before the heap was full, as a large table that is loaded at the
// start: they take room, but something else filled the rest. While the newest half or quarter was added, they got fewer
// samples than chance gives one that grows at lateRate of the heap's own pace: in one of a hundred such. Sites of the
// same method are done with them if they got none. None is done if all are.
func (h *detector) doneBefore(x *heads, at, since int) map[sites.Key]bool {
	half := h.filling(at, since)
	from := [...]int{since, half, h.filling(at, half)}
	gains, sum := map[sites.Key]gain{}, gain{}
	for k, s := range h.Sites {
		var g gain
		for i, c := range s.At {
			for part := range g {
				if int(c) > from[part] && int(c) <= at {
					g[part] += float64(s.Samples[i])
				}
			}
		}
		gains[k] = g
		for part := range g {
			sum[part] += max(0, g[part])
		}
	}
	done, with := map[sites.Key]bool{}, map[string]bool{}
	for k, g := range gains {
		for part := 1; part < len(g) && sum[0] > 0; part++ {
			if g[0] <= 0 || stats.PoissonAtMost(lateRate*g[0]*sum[part]/sum[0], max(0, g[part])) < 0.01 {
				done[k] = true
				with[x.of(k.Frame)] = true
			}
		}
	}
	for k, g := range gains {
		if g[2] <= 0 && sum[2] > 0 && with[x.of(k.Frame)] {
			done[k] = true
		}
	}
	if len(done) == len(gains) {
		clear(done)
	}
	return done
}

// filling gives the collection from which on the newest half of what was added after since came.
func (h *detector) filling(at, since int) int {
	half := (h.level(max(0, since)) + h.level(at)) / 2
	for i := at; i > since; i-- {
		if h.level(i) <= half {
			return i
		}
	}
	return since
}

// fill completes a structure that fills the heap: its growth in w seconds.
func (h *detector) fill(g *structure, scale, w, live float64) {
	total := &history.Series{}
	for _, k := range g.keys {
		s := h.Sites[k]
		total.At = append(total.At, s.At...)
		total.Bytes = append(total.Bytes, s.Bytes...)
		total.Samples = append(total.Samples, s.Samples...)
	}
	n := h.full.at + 1
	v, samples := make([]float64, n), make([]float64, n)
	total.Spread(v, samples)
	low := envelope(v)
	g.onset = onset(h.Times[:n], low)
	if low[0] == 0 && n > 0 && low[n-1] > 0 && v[0] == 0 {
		g.onset[0] = max(h.From, g.onset[0])
	}
	g.p = gained([]float64{samples[0], samples[n-1]})
	g.heapShare = min(1, scale*g.grown/max(live, 1))
	g.late *= scale
	if w > 0 {
		g.slope = g.late / w
	}
	k := max(1, g.samples)
	g.low, g.high = g.slope*stats.HalfChi2(0, k)/k, g.slope*stats.HalfChi2(1, k+1)/k
	g.grown = scale * (g.grown - max(0, v[0]))
	for _, m := range g.members {
		m.grown *= scale
		if w > 0 {
			m.slope *= scale / w
		}
	}
	for _, f := range h.Floors {
		if h.Times[f] >= h.Times[h.full.at] {
			g.floors++
		}
	}
}
