package web

import (
	"context"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// appended is a recording that grows.
type appended struct {
	mu   sync.Mutex
	all  []trace.Block // what is recorded at the end of the test
	have int           // how many of them are recorded now
	read int           // by the one reader
}

func (a *appended) Next() (trace.Block, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.read == a.have {
		return trace.Block{}, io.EOF
	}
	a.read++
	return a.all[a.read-1], nil
}

func (a *appended) version() (string, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strconv.Itoa(a.have), a.have == len(a.all)
}

// TestFollow: the viewer reads each block of a recording that grows once, whatever is asked between. Groups, trends and
// the cost are those of a replay from the start of what was recorded at the time of the question.
func TestFollow(t *testing.T) {
	m := tracetest.New(tracetest.All(4, trace.CollectorG1, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 60 {
		if i%17 == 16 {
			bs = append(bs, m.FullGC().Blocks...)
		} else {
			bs = append(bs, m.Step(i%7 == 0).Blocks...)
		}
	}
	src := &appended{all: bs, have: 12}
	s := New(Config{Open: func(func(done, total int64)) (*Input, error) {
		t.Error("the recording is read again")
		return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, OpenFrom: func(uint64) (*Input, error) {
		return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
	}, Follow: func(func(done, total int64)) (*Input, error) {
		return &Input{Source: src, Close: func() {}}, nil
	}})
	defer s.Close()
	s.cfg.Version = src.version // New would watch it
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(3, 4))
	for src.have < len(bs) {
		src.mu.Lock()
		src.have = min(src.have+1+rng.IntN(30), len(bs))
		now := slices.Clone(bs[:src.have])
		src.mu.Unlock()
		sameGroups(t, s, now)
	}
	if src.read != len(bs) {
		t.Errorf("%d of %d blocks were read", src.read, len(bs))
	}
	got, err := s.trendOf(ctx, question{by: "type"}, period{})
	if err != nil {
		t.Fatal(err)
	}
	by, filters, _ := question{by: "type"}.make(s)
	want, err := analysis.Trend(heap.NewReplay(&blocks{slices.Clone(bs)}),
		func() ([]classify.Classifier, []classify.Filter) { return by, filters }, trendRows)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.TrendReport, want) {
		t.Errorf("trend: %d rows of %d collections, a replay gives %d of %d, or others", len(got.Rows),
			len(got.Collections), len(want.Rows), len(want.Collections))
	}
	took := cost.New()
	for _, b := range bs {
		_ = took.Add(b)
	}
	took.Close()
	if rep := s.timeline(ctx).costs(ctx); rep == nil || rep.Cost.Total != took.Total ||
		!reflect.DeepEqual(rep.Cost.Events, took.Events) {
		t.Errorf("cost: %+v, want %+v", rep, took.Total)
	}
}

// sameGroups compares the groups of the newest state and of one before with those of a replay of bs.
func sameGroups(t *testing.T, s *Server, bs []trace.Block) {
	t.Helper()
	var known []uint64
	r := heap.NewReplay(&blocks{slices.Clone(bs)})
	for c, err := r.Next(); err == nil; c, err = r.Next() {
		if c.Known {
			known = append(known, c.GC)
		}
	}
	for _, ref := range []string{"last", strconv.FormatUint(known[len(known)/2], 10)} {
		gc := known[len(known)-1]
		if ref != "last" {
			gc = known[len(known)/2]
		}
		for _, by := range []string{"type, site, birth, spacetype", "type, length", "type, site"} {
			q := question{by: by}
			got, err := s.grouped(context.Background(), ref, q)
			if err != nil {
				t.Fatal(err)
			}
			all, err := got.tree.All(got.tree.Root)
			if err != nil {
				t.Fatal(err)
			}
			r := heap.NewReplay(&blocks{slices.Clone(bs)})
			c, err := collection.At(r, gc)
			if err != nil {
				t.Fatal(err)
			}
			w, spaces := analysis.World(r.View(), c)
			by, _, err := q.make(s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := analysis.Group(r.View(), c, w, spaces, by, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.GC != gc || got.Objects != want.Objects || got.Bytes != want.Bytes ||
				!reflect.DeepEqual(rows(all), rows(want.Tree)) {
				t.Errorf("of %d blocks, %s after collection %d (%d): %d objects and %d bytes, a replay gives %d and "+
					"%d, or other groups", len(bs), q.by, gc, got.GC, got.Objects, got.Bytes, want.Objects, want.Bytes)
			}
		}
	}
}
