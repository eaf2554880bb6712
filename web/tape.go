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
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// tape is a recording that grows no more, read once from its start while the page shows the overview. The states after
// its collections are kept, so that going to one needs no replay. They share what has not changed; if they take more
// than maxHeld all the same, every second one is let go.
type tape struct {
	d *data

	mu      sync.Mutex // of all below, and of the replayer while it reads
	r       *heap.Replay
	kept    []*heap.Snapshot      // ascending
	synced  []*heap.Snapshot      // those with a sync point, which take long to replay, ascending
	newest  *heap.Snapshot        // of both
	held    int                   // what they take
	every   int                   // the known collections whose number is a multiple of it are kept, and the last one
	counts  []*heap.CountSnapshot // the same of what counts alone
	few     int
	often   int
	points  []collection.Point
	read    uint64           // the newest collection
	all     int              // collections
	lives   heap.Lives       // samples
	places  *heap.Places     // where they stand
	samples heap.Sampling    // by kinds
	names   *heap.Names      // nil if more was read since
	last    *heap.Collection // the newest, if its state is known
	world   classify.World   // shared by the states
	ended   bool             // all is read
	went    chan struct{}    // closed when more is read
}

// maxHeld bounds what the states take, in bytes, roughly, and maxCounts what their counts take beside.
const maxHeld, maxCounts = 1 << 30, 1 << 27

func (d *data) newTape() *tape {
	t := &tape{d: d, every: 1, often: 1, went: make(chan struct{})}
	t.places = heap.NewPlaces(&t.lives)
	go t.run()
	return t
}

func (t *tape) run() {
	// An error ends it early: what is asked for beyond is replayed, and who asks gets the error.
	_ = t.d.replay(t.d.s.ctx, "reading the states", func(r *heap.Replay) error {
		t.r = r
		for {
			t.mu.Lock()
			err := t.step()
			close(t.went)
			t.went = make(chan struct{})
			t.mu.Unlock()
			if err != nil {
				return err
			}
		}
	})
	t.mu.Lock()
	t.ended = true
	close(t.went)
	t.went = make(chan struct{})
	first, last := uint64(0), uint64(0)
	if n := len(t.points); n > 0 {
		first, last = t.points[0].GC, t.points[n-1].GC
	}
	t.mu.Unlock()
	if last > 0 {
		t.d.s.warm(first, last)
	}
}

// warm makes what each view shows first. Its errors are those of who asks for the same.
func (s *Server) warm(first, last uint64) {
	from, to := strconv.FormatUint(first, 10), strconv.FormatUint(last, 10)
	_, _ = s.grouped(s.ctx, to, question{by: stateBy})
	_, _ = s.trendOf(s.ctx, question{by: changeBy})
	_, _ = s.diffBy(s.ctx, question{by: changeBy}, from, to)
	if t := s.tape(s.ctx); t != nil { // what trends by sites go over
		t.mu.Lock()
		i := slices.IndexFunc(t.counts, (*heap.CountSnapshot).Sites)
		var st *state
		if i >= 0 {
			st = t.stand(t.counts[i])
		}
		t.mu.Unlock()
		if st != nil {
			t.samples.Warm(st.r)
		}
	}
}

// step reads one collection.
func (t *tape) step() error {
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
	t.read = c.GC
	t.all++
	t.lives.Follow(t.r.Samples, c.GC)
	if !c.Known {
		return nil
	}
	t.last = c
	n := len(t.points)
	// Only after such a collection does a state with a sync point share as much as others.
	synced := c.Synced && c.Flags&trace.PauseExact != 0 && c.Flags&trace.PauseEdenKept == 0
	if n%t.every == 0 || synced {
		k := t.keep(c)
		if n%t.every == 0 {
			t.kept = append(t.kept, k)
		}
		if synced {
			t.synced = append(t.synced, k)
		}
		if t.held += k.New; t.held > maxHeld && len(t.kept) > 2 {
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
		if t.few += k.New; t.few > maxCounts && len(t.counts) > 2 {
			t.counts = second(t.counts)
			t.few = heap.HeldCounts(t.counts)
			t.often *= 2
		}
	}
	t.points = append(t.points, collection.PointOf(t.r.Symbols, c))
	return nil
}

// keep keeps the state after c, the newest collection.
func (t *tape) keep(c *heap.Collection) *heap.Snapshot {
	if t.newest == nil || t.newest.C != c {
		t.newest = t.r.Snapshot(c, t.newest)
	}
	return t.newest
}

// second gives every second one.
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

// wait waits until enough is read, or all.
func (t *tape) wait(ctx context.Context, enough func() bool) error {
	for {
		t.mu.Lock()
		if t.ended || enough() {
			t.mu.Unlock()
			return nil
		}
		went := t.went
		t.mu.Unlock()
		select {
		case <-went:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// state gives the state that ref means: one that was kept, or one replayed from the nearest kept one; nil if it is not
// there. It may tell no more than what.
func (t *tape) state(ctx context.Context, ref string, what detail) (*state, error) {
	gc, err := strconv.ParseUint(ref, 10, 64)
	if err := t.wait(ctx,
		func() bool { return err == nil && t.read >= gc || ref == "first" && len(t.points) > 0 }); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if gc, err = collection.FindAmong(ref, t.points); err != nil {
		t.mu.Unlock()
		return nil, err
	}
	if i, ok := findKept(t.counts, gc); ok && (what == ofTypes || what == ofSites && t.counts[i].Sites()) {
		defer t.mu.Unlock()
		return t.stand(t.counts[i]), nil
	}
	var k *heap.Snapshot // that replay starts from
	for _, kept := range [][]*heap.Snapshot{t.kept, t.synced} {
		i, ok := findKept(kept, gc)
		if ok {
			defer t.mu.Unlock()
			return t.stand(kept[i]), nil
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
	names := t.r.Names()
	t.mu.Unlock()
	in, err := t.d.s.cfg.OpenFrom(k.C.GC)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r, st := k.Resume(names, &t.lives, &stoppable{ctx, in.Source}), &state{}
	if st.c, err = collection.At(r, gc); err != nil {
		return nil, ctx.Err() // replayed from the start it may be known
	}
	st.r = r.View()
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	return st, nil
}

// findKept gives the place of collection gc, or where it would be.
func findKept[K heap.AnySnapshot](kept []K, gc uint64) (int, bool) {
	return slices.BinarySearchFunc(kept, gc, func(k K, gc uint64) int { return cmp.Compare(k.At().GC, gc) })
}

// stand makes a state of what was kept. The caller holds mu.
func (t *tape) stand(k heap.AnySnapshot) *state {
	if t.names == nil {
		t.names = t.r.Names()
	}
	st := &state{r: k.View(t.names, &t.lives), c: k.At()}
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	return st
}

// trendWork bounds the objects that a trend goes over, collection by collection, and trendSamples the samples if these
// are all that it looks at; it follows no fewer than trendLeast of the collections.
const (
	trendWork    = 200_000_000
	trendSamples = 4_000_000
	trendLeast   = 20
)

// trend follows groups over the kept states. Unless the classifiers ask for no more than types, which states count
// themselves, it leaves out collections of a large recording. It looks at no more of states than what.
func (t *tape) trend(
	ctx context.Context,
	what detail,
	again func() ([]classify.Classifier, []classify.Filter),
) (*analysis.TrendReport, error) {
	if err := t.wait(ctx, func() bool { return false }); err != nil {
		return nil, err
	}
	kept, unknown := t.some(what)
	tell := t.d.s.hub.progress("following the groups", "collections")
	defer tell(1, 1)
	rep, err := analysis.TrendStates(&t.samples, func(f func(*heap.View, *heap.Collection) bool) error {
		for i, k := range kept {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			tell(int64(i), int64(len(kept)))
			t.mu.Lock()
			st := t.stand(k)
			t.mu.Unlock()
			if !f(st.r, st.c) {
				break
			}
		}
		return nil
	}, again, trendRows)
	if rep != nil {
		rep.Unknown = unknown
	}
	return rep, err
}

// some gives the kept states that a trend goes over, first and last among them, and how many collections are not among
// the known ones.
func (t *tape) some(what detail) (kept []heap.AnySnapshot, unknown int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	unknown = t.all - len(t.points)
	if what == ofTypes || len(t.kept) == 0 {
		return every(t.counts), unknown
	}
	from, most := every(t.kept), trendWork/int(t.kept[len(t.kept)-1].C.Objects+1)
	if what == ofSites && !slices.ContainsFunc(t.counts, func(k *heap.CountSnapshot) bool { return !k.Sites() }) {
		from, most = every(t.counts), trendSamples/(t.kept[len(t.kept)-1].C.LiveSamples+1)
	}
	n := len(from)
	most = min(n, max(trendLeast, most))
	for i := range most {
		kept = append(kept, from[i*max(n-1, 1)/max(most-1, 1)])
	}
	return kept, unknown
}

// every gives kept collections of one sort as those of any.
func every[K heap.AnySnapshot](kept []K) []heap.AnySnapshot {
	out := make([]heap.AnySnapshot, len(kept))
	for i, k := range kept {
		out[i] = k
	}
	return out
}
