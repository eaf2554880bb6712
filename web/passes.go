package web

import (
	"errors"
	"io"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// begin begins a pass.
func (t *timeline) begin() {
	version, over := t.d.s.version()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passes++
	t.version, t.over = version, over
}

// advance ends a pass, or says that more was read. The caller holds mu.
func (t *timeline) advance() {
	close(t.advanced)
	t.advanced = make(chan struct{})
}

// run makes the passes. An error ends a pass early. A request for a later state replays the recording, and gets the
// error.
func (t *timeline) run() {
	took, by := cost.New(), newAllocators()
	var in *Input
	defer func() {
		if in != nil {
			in.Close()
		}
	}()
	for warmed := false; ; {
		t.pass(&in, took, by)
		t.mu.Lock()
		t.done = t.passes
		t.prune()
		t.advance()
		first, last, over := uint64(0), uint64(0), t.over
		if n := len(t.points); n > 0 {
			first, last = t.points[0].GC, t.points[n-1].GC
		}
		t.mu.Unlock()
		if over && !warmed && last > 0 {
			warmed = true
			go t.d.s.warm(first, last)
		}
		if t.d.s.cfg.Follow == nil {
			return
		}
		select {
		case <-t.wake:
		case <-t.d.s.ctx.Done():
			return
		}
		t.begin()
	}
}

// pass reads what is recorded and was not read. The first pass opens the recording.
func (t *timeline) pass(in **Input, took *cost.Cost, by *allocators) {
	ctx, d := t.d.s.ctx, t.d
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-d.slots }()
	report := d.s.hub.progress("Reading the heap states", "")
	defer report(1, 1)
	if *in == nil {
		open := d.s.cfg.Follow
		if open == nil {
			open = d.s.cfg.Open
		}
		opened, err := open(report)
		if err != nil {
			return
		}
		t.mu.Lock()
		t.r = heap.NewReplay(&stoppable{ctx, &metered{&paused{opened.Source, &t.over}, took, &t.refs}})
		t.r.Damage = append(t.r.Damage, opened.Problems...)
		t.oldest = opened.Oldest
		t.mu.Unlock()
		*in = opened
	}
	t.thin()
	for {
		t.mu.Lock()
		err := t.step()
		if err == nil {
			by.take(t.r.Sampled)
		} else if errors.Is(err, io.EOF) && t.read > 0 && ctx.Err() == nil {
			took.Close()
			rep := by.reply(t.r.Symbols)
			rep.Cost, t.cost = took.Clone(), &rep
		}
		t.advance()
		t.mu.Unlock()
		if err != nil {
			return
		}
		if t.any() {
			d.s.way.give(ctx.Done())
		}
	}
}

// paused is a source at whose end more may follow while the recording grows.
type paused struct {
	heap.BlockSource
	over *bool // the recording does not grow any more
}

func (p *paused) Next() (trace.Block, error) {
	b, err := p.BlockSource.Next()
	if err == io.EOF && !*p.over {
		err = heap.ErrPaused
	}
	return b, err
}

// thin drops the states that the pass before kept only because they were the last.
func (t *timeline) thin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.points)
	if n == 0 {
		return
	}
	if k := len(t.kept); k > 2 && t.kept[k-1].C.GC == t.points[n-1].GC && (n-1)%t.every != 0 {
		t.kept = t.kept[:k-1]
	}
	if k := len(t.counts); k > 2 && t.counts[k-1].C.GC == t.points[n-1].GC && (n-1)%t.often != 0 {
		t.counts = t.counts[:k-1]
	}
}

// prune drops what the ring has evicted. The caller holds mu.
func (t *timeline) prune() {
	if t.oldest == nil || t.oldest() == 0 {
		return
	}
	from := t.oldest()
	t.kept, t.synced, t.counts = since(t.kept, from), since(t.synced, from), since(t.counts, from)
	t.points = slices.DeleteFunc(t.points, func(p collection.Point) bool { return p.GC < from })
	t.unknown = slices.DeleteFunc(t.unknown, func(gc uint64) bool { return gc < from })
}

// since drops the states of collections before gc.
func since[K heap.AnySnapshot](kept []K, gc uint64) []K {
	i, _ := findKept(kept, gc)
	return slices.Delete(kept, 0, i)
}

// goal returns the pass that has read all that is recorded now, and begins it if need be.
func (t *timeline) goal() int {
	if t.d.s.cfg.Follow == nil {
		return 1
	}
	version, _ := t.d.s.version()
	t.mu.Lock()
	defer t.mu.Unlock()
	if version == t.version {
		return t.passes
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return t.passes + 1
}
