package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// timeline holds the heap states of a recording. The recording is read once, from its start, while the page shows the
// overview; a state that is kept needs no replay later. Of a recording that grows, each *pass* reads what was added
// since the one before (Config.Follow). States share memory for what has not changed. When they need more than
// maxHeld, every second one is freed.
type timeline struct {
	d    *data
	wake chan struct{} // begins a pass

	mu         sync.Mutex // guards the fields below, and the replay while it reads
	r          *heap.Replay
	oldest     func() uint64         // the first collection that the recording still has; nil: it has all
	kept       []*heap.Snapshot      // ascending
	synced     []*heap.Snapshot      // those with a sync point, which are slow to replay; ascending
	newest     *heap.Snapshot        // of kept and synced
	held       int                   // bytes of kept and synced
	every      int                   // of the known collections every so many are kept, and the last one
	counts     []*heap.CountSnapshot // the same for states that hold only counts
	heldCounts int
	often      int
	points     []collection.Point
	read       uint64           // the newest collection that is read
	unknown    []uint64         // collections that are read and whose state is not known
	lives      heap.Lives       // samples
	places     *heap.Places     // the places of the samples
	samples    *heap.Sampling   // by kind; a new one when more is read
	names      *heap.Names      // nil: out of date, because more was read since
	callers    sites.Callers    // of the samples that are read
	drawn      *sites.Callers   // callers when names were taken; nil: none is drawn
	last       *heap.Collection // the newest collection, if its state is known
	world      classify.World   // shared by the states
	passes     int              // that have begun
	done       int              // that have ended
	version    string           // of the recording when the newest pass began
	over       bool             // it did not grow any more then
	cost       *costReply       // after the newest pass; nil: not all of the recording was read
	refs       int              // blocks of reference listings that were read
	advanced   chan struct{}    // closed and replaced when more is read
}

// maxHeld bounds the memory for states, and maxCounts that for counts, in bytes (estimated). The viewer of a recording
// that grows often runs on the host of the JVM: it keeps no more than maxHeldLive.
const maxHeld, maxHeldLive, maxCounts = 1 << 30, 1 << 27, 1 << 27

func (d *data) newTimeline() *timeline {
	t := &timeline{d: d, every: 1, often: 1, advanced: make(chan struct{}), wake: make(chan struct{}, 1),
		samples: &heap.Sampling{}}
	t.places = heap.NewPlaces(&t.lives)
	t.world.Share(&t.world)
	t.begin() // a request that comes at once waits for this pass
	go t.run()
	return t
}

// costs returns the answer about cost; nil: all of the recording is not read yet.
func (t *timeline) costs(ctx context.Context) *costReply {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	rep := t.cost
	t.mu.Unlock()
	if rep == nil || t.wait(ctx, func() bool { return false }) != nil { // what was added since is read soon
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cost
}

// unreferenced says that the recording has no reference listing; false: it has one, or it is not read to its end.
func (t *timeline) unreferenced(ctx context.Context) bool {
	if t.costs(ctx) == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refs == 0
}

// warm computes what each view shows first. Errors are dropped: a request for the same gets them again.
func (s *Server) warm(first, last uint64) {
	from, to := strconv.FormatUint(first, 10), strconv.FormatUint(last, 10)
	_, _ = s.grouped(s.ctx, to, question{by: stateBy})
	for _, by := range []string{changeBy, "site(1)"} { // the areas of the overview
		_, _ = s.trendOf(s.ctx, question{by: by}, period{})
	}
	_, _ = s.diffBy(s.ctx, question{by: changeBy}, from, to)
	_, _ = s.stacks(s.ctx, to, question{by: stateBy})
	for _, at := range []string{from, to} {
		_, _ = s.stacks(s.ctx, at, question{by: codeBy})
	}
	for _, by := range []string{"thread, site, type", "ages, type, site"} { // the page's buttons
		_, _ = s.stacks(s.ctx, to, question{by: by})
		_, _ = s.grouped(s.ctx, to, question{by: by})
	}
	_, _ = s.grouped(s.ctx, to, question{by: codeBy})
	if t := s.timeline(s.ctx); t != nil { // what trends by site need
		t.mu.Lock()
		i := slices.IndexFunc(t.counts, (*heap.CountSnapshot).Sites)
		var st *state
		if i >= 0 {
			st = t.stateOf(t.counts[i])
		}
		samples := t.samples
		t.mu.Unlock()
		if st != nil {
			samples.Warm(st.r)
		}
	}
}

// step reads one collection.
func (t *timeline) step() error {
	c, err := t.r.Next()
	if err != nil {
		if n := len(t.kept); errors.Is(err, io.EOF) && n > 0 && t.last != nil && t.r.Known {
			if t.kept[n-1].C != t.last {
				t.kept = append(t.kept, t.keep(t.last))
			}
			if t.counts[len(t.counts)-1].C != t.last {
				t.counts = append(t.counts, t.r.Count(t.last, t.places))
			}
		}
		return err
	}
	t.names, t.last = nil, nil
	t.callers.Follow(&t.r.Cursor)
	if t.done > 0 {
		t.samples = &heap.Sampling{}
	}
	t.read = c.GC
	t.lives.Follow(t.r.Samples, c.GC)
	if !c.Known {
		t.unknown = append(t.unknown, c.GC)
		return nil
	}
	t.last = c
	n := len(t.points)
	// Only after such a collection a state with a sync point shares as much memory as others.
	synced := c.Synced && c.Flags&trace.PauseExact != 0 && c.Flags&trace.PauseEdenKept == 0
	if n%t.every == 0 || synced {
		k := t.keep(c)
		if n%t.every == 0 {
			t.kept = append(t.kept, k)
		}
		if synced {
			t.synced = append(t.synced, k)
		}
		most := maxHeld
		if !t.over {
			most = maxHeldLive
		}
		if t.held += k.New; t.held > most && len(t.kept) > 2 {
			t.kept = second(t.kept)
			if len(t.synced) > len(t.kept) {
				t.synced = second(t.synced)
			}
			t.held = heap.Held(append(slices.Clone(t.kept), t.synced...))
			t.every *= 2
		}
	}
	if n%t.often == 0 {
		k := t.r.Count(c, t.places)
		t.counts = append(t.counts, k)
		if t.heldCounts += k.New; t.heldCounts > maxCounts && len(t.counts) > 2 {
			t.counts = second(t.counts)
			t.heldCounts = heap.HeldCounts(t.counts)
			t.often *= 2
		}
	}
	t.points = append(t.points, collection.PointOf(t.r.Symbols, c))
	return nil
}

// keep keeps the state after c, the newest collection.
func (t *timeline) keep(c *heap.Collection) *heap.Snapshot {
	if t.newest == nil || t.newest.C != c {
		t.newest = t.r.Snapshot(c, t.newest)
	}
	return t.newest
}

// second keeps every second element.
func second[K heap.AnySnapshot](kept []K) []K {
	thin := kept[:0]
	for i, k := range kept {
		if i%2 == 0 {
			thin = append(thin, k)
		}
	}
	clear(kept[len(thin):])
	return thin
}

// wait returns when enough() holds or the recording is read to its end, which is that of now.
func (t *timeline) wait(ctx context.Context, enough func() bool) error {
	for goal := t.goal(); ; {
		t.mu.Lock()
		if t.done >= goal || enough() {
			t.mu.Unlock()
			return nil
		}
		advanced := t.advanced
		t.mu.Unlock()
		select {
		case <-advanced:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// state returns the state of the collection ref: a kept one, or one replayed from the nearest kept one before it. It
// returns nil if neither is possible. The state may hold no more detail than what.
func (t *timeline) state(ctx context.Context, ref string, what detail) (*state, error) {
	gc, err := strconv.ParseUint(ref, 10, 64)
	if err := t.wait(ctx,
		func() bool { return err == nil && t.read >= gc || ref == "first" && len(t.points) > 0 }); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if gc, err = collection.FindAmong(ref, t.points); err != nil {
		over := t.over
		t.mu.Unlock()
		if !over { // the sync point of a collection may come after its pass
			err = nil
		}
		return nil, err
	}
	if i, ok := findKept(t.counts, gc); ok && (what == ofTypes || what == ofSites && t.counts[i].Sites()) {
		defer t.mu.Unlock()
		return t.stateOf(t.counts[i]), nil
	}
	var k *heap.Snapshot // from which the replay starts
	for _, kept := range [][]*heap.Snapshot{t.kept, t.synced} {
		i, ok := findKept(kept, gc)
		if ok {
			defer t.mu.Unlock()
			return t.stateOf(kept[i]), nil
		}
		for i--; i >= 0 && kept[i].C.Flags&trace.PauseEdenKept != 0; i-- {
		}
		if i >= 0 && (k == nil || k.C.GC < kept[i].C.GC) {
			k = kept[i]
		}
	}
	known := slices.ContainsFunc(t.points, func(p collection.Point) bool { return p.GC == gc })
	if k == nil || !known || t.d.s.cfg.OpenFrom == nil {
		t.mu.Unlock()
		return nil, nil
	}
	names, callers := t.named()
	t.mu.Unlock()
	in, err := t.d.s.cfg.OpenFrom(k.C.GC)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r, st := k.Resume(names, &t.lives, &stoppable{ctx, in.Source}), &state{}
	if st.c, err = collection.At(r, gc); err != nil {
		return nil, ctx.Err() // a replay from the start may find it
	}
	st.r = r.View()
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	st.callers = callers
	analysis.DrawCallers(st.world, st.r, callers)
	return st, nil
}

// nearest returns the newest collection before gc whose state is kept, while the recording is not read up to gc. It is
// 0 if gc is read.
func (t *timeline) nearest(ctx context.Context, gc uint64) (near uint64, ended bool, err error) {
	goal := t.goal()
	err = t.wait(ctx, func() bool { return t.read >= gc || len(t.kept) > 0 })
	t.mu.Lock()
	defer t.mu.Unlock()
	ended = t.done >= goal
	if !ended && t.read < gc && err == nil && len(t.kept) > 0 {
		near = t.kept[len(t.kept)-1].C.GC
	}
	return near, ended, err
}

// any says that a heap state can be shown.
func (t *timeline) any() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.kept) > 0
}

// findKept returns the index of collection gc, or the index at which it would be inserted.
func findKept[K heap.AnySnapshot](kept []K, gc uint64) (int, bool) {
	return slices.BinarySearchFunc(kept, gc, func(k K, gc uint64) int { return cmp.Compare(k.At().GC, gc) })
}

// stateOf makes a state of a kept one. The caller holds mu.
func (t *timeline) stateOf(k heap.AnySnapshot) *state {
	names, callers := t.named()
	st := &state{r: k.View(names, &t.lives), c: k.At()}
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	st.callers = callers
	analysis.DrawCallers(st.world, st.r, callers)
	return st
}

// named returns the names of what is read, and from what callers are drawn. The caller holds mu.
func (t *timeline) named() (*heap.Names, *sites.Callers) {
	if t.names == nil {
		t.names, t.drawn = t.r.Names(), t.callers.Frozen()
	}
	return t.names, t.drawn
}

// trendWork bounds the objects that a trend reads, summed over the collections; trendSamples bounds the samples of a
// trend that needs only samples. A trend has at least trendLeast collections.
const (
	trendWork    = 200_000_000
	trendSamples = 4_000_000
	trendLeast   = 20
)

// trend computes a trend over the kept states of a period. In a large recording it skips collections, unless the
// classifiers need only types, which states have counted. It uses no more detail of the states than what.
func (t *timeline) trend(
	ctx context.Context,
	what detail,
	in period,
	again func() ([]classify.Classifier, []classify.Filter),
) (*analysis.TrendReport, error) {
	if err := t.wait(ctx, func() bool { return false }); err != nil {
		return nil, err
	}
	kept, unknown := t.some(what, in)
	t.mu.Lock()
	samples := t.samples
	_, callers := t.named()
	t.mu.Unlock()
	report := t.d.s.hub.progress("Computing the trends", "collections")
	defer report(1, 1)
	rep, err := analysis.TrendStates(samples, callers, func(f func(*heap.View, *heap.Collection) bool) error {
		for i, k := range kept {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			report(int64(i), int64(len(kept)))
			t.mu.Lock()
			st := t.stateOf(k)
			t.mu.Unlock()
			if !f(st.r, st.c) {
				break
			}
		}
		return nil
	}, again, 0)
	if rep != nil {
		rep.Unknown = unknown
	}
	return rep, err
}

// some returns the kept states of a period that a trend reads, among them the first and the last, and the number of
// collections whose state is unknown.
func (t *timeline) some(what detail, in period) (kept []heap.AnySnapshot, unknown int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unknown = len(t.unknown)
	within := func(all []heap.AnySnapshot) []heap.AnySnapshot {
		return slices.DeleteFunc(all, func(k heap.AnySnapshot) bool {
			return !in.has(collection.Wall(t.r.Symbols, k.At().End()))
		})
	}
	if what == ofTypes || len(t.kept) == 0 {
		return within(every(t.counts)), unknown
	}
	from, most := every(t.kept), trendWork/int(t.kept[len(t.kept)-1].C.Objects+1)
	if what == ofSites && !slices.ContainsFunc(t.counts, func(k *heap.CountSnapshot) bool { return !k.Sites() }) {
		from, most = every(t.counts), trendSamples/(t.kept[len(t.kept)-1].C.LiveSamples+1)
	}
	from = within(from)
	n := len(from)
	most = min(n, max(trendLeast, most))
	for i := range most {
		kept = append(kept, from[i*max(n-1, 1)/max(most-1, 1)])
	}
	return kept, unknown
}

// every converts a slice of one type of kept state to a slice of the interface.
func every[K heap.AnySnapshot](kept []K) []heap.AnySnapshot {
	out := make([]heap.AnySnapshot, len(kept))
	for i, k := range kept {
		out[i] = k
	}
	return out
}
