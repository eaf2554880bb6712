package web

import (
	"context"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

type blocks struct{ b []trace.Block }

func (s *blocks) Next() (trace.Block, error) {
	if len(s.b) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b, nil
}

// TestTimeline: the groups after each known collection, whose state is kept or replayed from a kept one, are those of a
// replay from the start.
func TestTimeline(t *testing.T) {
	m := tracetest.New(tracetest.All(4, trace.CollectorG1, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 50 {
		if i%17 == 16 {
			bs = append(bs, m.FullGC().Blocks...)
		} else {
			bs = append(bs, m.Step(i%7 == 0).Blocks...)
		}
	}
	input := func() (*Input, error) { return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil }
	s := New(Config{Open: func(func(done, total int64)) (*Input, error) { return input() },
		OpenFrom: func(uint64) (*Input, error) { return input() }})
	defer s.Close()
	ctx := context.Background()
	tl := s.timeline(ctx)
	if err := tl.wait(ctx, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	tl.mu.Lock()
	if len(tl.points) < 20 || len(tl.kept) != len(tl.points) {
		t.Fatalf("%d of %d states are kept", len(tl.kept), len(tl.points))
	}
	var thin []*heap.Snapshot
	for i, k := range tl.kept {
		if i%4 == 0 {
			thin = append(thin, k)
		}
	}
	tl.kept = thin
	points := tl.points
	tl.mu.Unlock()
	// the last two need only counts
	for _, by := range []string{"type, site, birth, spacetype", "type, length", "type, site"} {
		q := question{by: by}
		by, _, err := q.make(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			got, err := s.grouped(ctx, strconv.FormatUint(p.GC, 10), q)
			if err != nil {
				t.Fatal(err)
			}
			all, err := got.tree.All(got.tree.Root)
			if err != nil {
				t.Fatal(err)
			}
			r := heap.NewReplay(&blocks{slices.Clone(bs)})
			c, err := collection.At(r, p.GC)
			if err != nil {
				t.Fatal(err)
			}
			w, spaces := analysis.World(r.View(), c)
			want, err := analysis.Group(r.View(), c, w, spaces, by, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got.Objects != want.Objects || got.Bytes != want.Bytes ||
				!reflect.DeepEqual(rows(all), rows(want.Tree)) {
				t.Errorf("after collection %d: %d objects and %d bytes, a replay gives %d and %d, or other groups",
					p.GC, got.Objects, got.Bytes, want.Objects, want.Bytes)
			}
		}
	}
	for _, by := range []string{"type", "site(1)", "type, site"} {
		q := question{by: by}
		got, err := s.trendOf(ctx, q, period{})
		if err != nil {
			t.Fatal(err)
		}
		r := heap.NewReplay(&blocks{slices.Clone(bs)})
		want, err := analysis.Trend(r, func() ([]classify.Classifier, []classify.Filter) {
			by, filters, err := q.make(s)
			if err != nil {
				t.Fatal(err)
			}
			return by, filters
		}, trendRows)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Collections) == len(points) && !reflect.DeepEqual(got.TrendReport, want) {
			t.Errorf("trend by %s: %d rows, a replay gives %d, or others", by, len(got.Rows), len(want.Rows))
		}
	}
}

// TestGrowingTrend: a trend of a recording that still grows is about the same part of the time as that of one that has
// ended.
func TestGrowingTrend(t *testing.T) {
	m := tracetest.New(tracetest.All(4, trace.CollectorG1, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 40 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	trend := func(over bool, in period) *trended {
		s := New(Config{Open: func(func(done, total int64)) (*Input, error) {
			return &Input{Source: &blocks{slices.Clone(bs)}, Close: func() {}}, nil
		}, Version: func() (string, bool) { return "1", over }})
		defer s.Close()
		got, err := s.trendOf(context.Background(), question{by: "type"}, in)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	all := trend(true, period{})
	n := len(all.Collections)
	if n < 20 {
		t.Fatalf("%d collections", n)
	}
	a, b := all.Collections[n/4].Time, all.Collections[n/2].Time
	in := period{a.UnixMilli(), b.UnixMilli() + 1}
	want, got := trend(true, in), trend(false, in) // the former is a part of the trend of all collections
	if len(want.Collections) >= n || len(want.Collections) < 2 {
		t.Fatalf("%d of %d collections are in the period", len(want.Collections), n)
	}
	if !reflect.DeepEqual(got.TrendReport, want.TrendReport) {
		t.Errorf("a growing recording: %d collections and %d rows, want %d and %d, or other figures",
			len(got.Collections), len(got.Rows), len(want.Collections), len(want.Rows))
	}
}

// rows returns the groups by path, with objects, bytes and samples.
func rows(tree *grouping.Node) map[string][3]uint64 {
	out := map[string][3]uint64{}
	tree.Walk(func(path []string, n *grouping.Node) bool {
		out[strings.Join(path, "\x00")] = [3]uint64{n.Objects, n.Bytes, n.Samples}
		return true
	})
	return out
}
