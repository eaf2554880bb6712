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
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// tape is a recording that grows no more, read once from its start while the page shows the overview. The states after its collections are kept, so
// that going to one needs no replay. They share what has not changed; if they take more than maxHeld all the same, every second one is let go.
type tape struct {
	d *data

	mu     sync.Mutex // of all below, and of the replayer while it reads
	r      *heap.Replayer
	kept   []*heap.Kept // ascending
	held   int          // what they take
	every  int          // the known collections whose number is a multiple of it are kept, and the last one
	points []analysis.Point
	read   uint64           // the newest collection
	all    int              // collections
	lives  []life           // of samples
	alive  map[uint64]int   // by id, in lives
	names  *heap.Names      // nil if more was read since
	last   *heap.Collection // the newest, if its state is known
	world  classify.World   // shared by the states
	ended  bool             // all is read
	went   chan struct{}    // closed when more is read
}

// life is when a sample was alive: from a collection on, until another (0: to the end).
type life struct {
	s        *heap.Sample
	from, to uint64
}

// maxHeld bounds what the states take, in bytes, roughly.
const maxHeld = 1 << 30

func (d *data) newTape() *tape {
	t := &tape{d: d, every: 1, alive: map[uint64]int{}, went: make(chan struct{})}
	go t.run()
	return t
}

func (t *tape) run() {
	// An error ends it early: what is asked for beyond is replayed, and who asks gets the error.
	_ = t.d.replay(t.d.s.ctx, "reading the states", func(r *heap.Replayer) error {
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
	if st, err := s.at(s.ctx, to); err == nil {
		_, _ = st.group(s.ctx, s, question{by: stateBy})
	}
	_, _ = s.trendOf(s.ctx, question{by: changeBy})
	_, _ = s.diffBy(s.ctx, question{by: changeBy}, from, to)
}

// step reads one collection.
func (t *tape) step() error {
	c, err := t.r.Next()
	if err != nil {
		if n := len(t.kept); errors.Is(err, io.EOF) && n > 0 && t.last != nil && t.r.Known && t.kept[n-1].C != t.last {
			t.kept = append(t.kept, t.r.Keep(t.last))
		}
		return err
	}
	t.names, t.last = nil, nil
	t.read = c.GC
	t.all++
	for _, s := range t.r.Came {
		t.alive[s.ID] = len(t.lives)
		t.lives = append(t.lives, life{s, c.GC, 0})
	}
	for _, s := range t.r.Went {
		if i, ok := t.alive[s.ID]; ok {
			t.lives[i].to = c.GC
			delete(t.alive, s.ID)
		}
	}
	if !c.Known {
		return nil
	}
	t.last = c
	if len(t.points)%t.every == 0 {
		k := t.r.Keep(c)
		t.kept = append(t.kept, k)
		if t.held += k.New; t.held > maxHeld && len(t.kept) > 2 {
			thin := t.kept[:0]
			for i, k := range t.kept {
				if i%2 == 0 {
					thin = append(thin, k)
				}
			}
			clear(t.kept[len(thin):])
			t.kept, t.held = thin, heap.Held(thin)
			t.every *= 2
		}
	}
	t.points = append(t.points, analysis.PointOf(t.r, c))
	return nil
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

// state gives the state that ref means: one that was kept, or one replayed from the nearest kept one; nil if it is not there.
func (t *tape) state(ctx context.Context, ref string) (*state, error) {
	gc, err := strconv.ParseUint(ref, 10, 64)
	if err := t.wait(ctx, func() bool { return err == nil && t.read >= gc || ref == "first" && len(t.points) > 0 }); err != nil {
		return nil, err
	}
	t.mu.Lock()
	if gc, err = analysis.FindAmong(ref, t.points); err != nil {
		t.mu.Unlock()
		return nil, err
	}
	i, ok := slices.BinarySearchFunc(t.kept, gc, func(k *heap.Kept, gc uint64) int { return cmp.Compare(k.C.GC, gc) })
	if ok {
		defer t.mu.Unlock()
		return t.stand(t.kept[i], true), nil
	}
	for i--; i >= 0 && t.kept[i].C.Flags&trace.PauseEdenKept != 0; i-- {
	}
	known := slices.ContainsFunc(t.points, func(p analysis.Point) bool { return p.GC == gc })
	if i < 0 || !known || t.d.s.cfg.OpenFrom == nil {
		t.mu.Unlock()
		return nil, nil
	}
	k := t.kept[i]
	base, names := t.stand(k, true), t.r.Names()
	t.mu.Unlock()
	in, err := t.d.s.cfg.OpenFrom(k.C.GC)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	st := &state{r: k.Resume(names, base.r.Live, &stoppable{ctx, in.Source})}
	if st.c, err = analysis.At(st.r, gc); err != nil {
		return nil, ctx.Err() // replayed from the start it may be known
	}
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	return st, nil
}

// stand makes a state of what was kept, with the samples that live then or without. The caller holds mu.
func (t *tape) stand(k *heap.Kept, samples bool) *state {
	live := map[uint64]*heap.Sample{}
	for _, l := range t.lives {
		if samples && l.from <= k.C.GC && (l.to == 0 || l.to > k.C.GC) {
			live[l.s.ID] = l.s
		}
	}
	if t.names == nil {
		t.names = t.r.Names()
	}
	st := &state{r: k.Replayer(t.names, live), c: k.C}
	st.world, st.spaces = analysis.World(st.r, st.c)
	st.world.Share(&t.world)
	return st
}

// trendWork bounds the objects that a trend goes over, collection by collection; it follows no fewer than trendLeast of these.
const (
	trendWork  = 200_000_000
	trendLeast = 20
)

// trend follows groups over the kept states. Unless the classifiers ask for no more than types, which states count themselves, it leaves out
// collections of a large recording.
func (t *tape) trend(ctx context.Context, types bool, again func() ([]classify.Classifier, []classify.Filter)) (*analysis.TrendReport, error) {
	if err := t.wait(ctx, func() bool { return false }); err != nil {
		return nil, err
	}
	kept, unknown := t.some(types)
	tell := t.d.s.hub.progress("following the groups", "collections")
	defer tell(1, 1)
	rep, err := analysis.TrendStates(func(f func(*heap.Replayer, *heap.Collection) bool) error {
		for i, k := range kept {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			tell(int64(i), int64(len(kept)))
			t.mu.Lock()
			st := t.stand(k, !types)
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

// some gives the kept states that a trend goes over, first and last among them, and how many collections are not among the known ones.
func (t *tape) some(all bool) (kept []*heap.Kept, unknown int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.kept)
	most := n
	if n > 0 && !all {
		most = min(n, max(trendLeast, trendWork/int(t.kept[n-1].C.Objects+1)))
	}
	for i := range most {
		kept = append(kept, t.kept[i*max(n-1, 1)/max(most-1, 1)])
	}
	return kept, t.all - len(t.points)
}
