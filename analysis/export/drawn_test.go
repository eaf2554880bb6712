package export

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/analysistest/sitedtest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// exactRecording opens a recording with exact sites, and gives its state at the end.
func exactRecording(t *testing.T) (open func() *heap.Replay, v *heap.View, c *heap.Collection, from *sites.Callers) {
	m := tracetest.New(tracetest.All(4, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 20 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = sitedtest.Blocks(t, append(bs, m.End()))
	open = func() *heap.Replay { return heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)}) }
	var callers *sites.Callers
	v, c, err := collection.OpenWatched("last", open, open, func(r *heap.Cursor) func(*heap.Collection) {
		callers = &sites.Callers{}
		return func(*heap.Collection) { callers.Follow(r) }
	})
	if err != nil {
		t.Fatal(err)
	}
	return open, v, c, callers.Frozen()
}

// exact is how many objects of a state have an exact innermost frame alone.
func exact(live *heap.Live) (n int) {
	for id := range live.All() {
		if samples.Sited(id) {
			n++
		}
	}
	return n
}

// TestDrawnProfile: pprof and collapsed stacks have drawn callers, and mark what has them. What the innermost frame has
// is what it has without callers.
func TestDrawnProfile(t *testing.T) {
	open, v, c, _ := exactRecording(t)
	p, err := NewProfile(open(), c.GC)
	if err != nil {
		t.Fatal(err)
	}
	n := exact(v.Live)
	var b, folded bytes.Buffer
	if err := p.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	drawn, all := int64(0), int64(0)
	for _, s := range prof.Sample {
		if s.Value[2] < 0 || s.Value[3] < 0 {
			t.Errorf("negative: %v", s.Value)
		}
		if all += s.Value[3]; slices.Equal(s.Label["callers"], []string{"drawn"}) {
			drawn += s.Value[2]
			if len(s.Location) != 2 || s.Value[0] != 0 {
				t.Errorf("drawn: %d frames, %v", len(s.Location), s.Value)
			}
		}
	}
	if drawn != int64(n) || n < 100 || len(prof.Comments) != 2 || !strings.Contains(prof.Comments[1], "drawn") {
		t.Errorf("%d of %d objects are drawn; %q", drawn, n, prof.Comments)
	}
	if d := all - int64(v.State.Bytes()); d > 20 || -d > 20 { // rounded
		t.Errorf("%d bytes, the state has %d", all, v.State.Bytes())
	}
	if err := p.WriteCollapsed(&folded, "inuse_objects"); err != nil {
		t.Fatal(err)
	}
	marked := 0
	for l := range strings.Lines(folded.String()) {
		if strings.Contains(l, "_[callers_drawn] ") {
			if marked++; strings.Count(l, ";") != 2 {
				t.Error(l)
			}
		}
	}
	if marked < 4 {
		t.Errorf("%d lines are marked:\n%s", marked, &folded)
	}
	// With callers or without, each class has the same at the innermost frame.
	type place struct {
		method uint64
		typ    uint32
	}
	got, want := map[place]float64{}, map[place]float64{}
	for _, x := range p.values {
		got[place{v.Frames[x.frame].Method, x.typ}] += x.live[1]
	}
	w, spaces := analysis.World(v, c)
	ts, err := analysis.Tuples(v, w, spaces, classify.AttrSite, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, size := grouping.Estimate(w, ts)
	for i := range ts {
		want[place{v.Frames[ts[i].Frame].Method, ts[i].Type}] += size[i]
	}
	for k, n := range want {
		if math.Abs(got[k]-n) > 1 {
			t.Errorf("%s has %g bytes at %d, without callers %g", v.TypeName(k.typ), got[k], k.method, n)
		}
	}
}

// TestDrawnTables: the tables with stacks have drawn callers, and say of which objects.
func TestDrawnTables(t *testing.T) {
	open, v, c, from := exactRecording(t)
	ctx, n := context.Background(), exact(v.Live)
	rows := func(write func(w *bytes.Buffer) error, to any) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Bytes(), to); err != nil {
			t.Fatal(err)
		}
	}
	var state struct{ Rows []StateRow }
	rows(func(w *bytes.Buffer) error { return State(ctx, w, "json", v, c, from) }, &state)
	var sampled struct{ Rows []SampleRow }
	rows(func(w *bytes.Buffer) error { return Samples(ctx, w, "json", open()) }, &sampled)
	p, err := NewProfile(open(), c.GC)
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ Rows []SiteRow }
	rows(func(w *bytes.Buffer) error { return p.Sites(ctx, w, "json") }, &at)
	var stacks struct{ Rows []StackRow }
	rows(func(w *bytes.Buffer) error { return p.Stacks(ctx, w, "json") }, &stacks)
	drawn := 0
	for _, x := range state.Rows {
		if x.Drawn {
			drawn++
		}
		if frames := strings.Count(x.Stack, "; ") + 1; x.Drawn != samples.Sited(x.Sample) || x.Drawn && frames != 2 {
			t.Errorf("%+v", x)
		}
	}
	live := 0
	for _, x := range sampled.Rows {
		if x.Drawn && x.Died == 0 {
			live++
		}
		if x.Drawn != samples.Sited(x.ID) || strings.Count(x.Stack, "; ") != 1 {
			t.Errorf("%+v", x)
		}
	}
	sum, known := 0, map[string]bool{}
	for _, x := range stacks.Rows {
		known[x.StackID] = true
	}
	for _, x := range at.Rows {
		if sum += int(x.Drawn); x.Drawn > x.Objects || x.StackID != "" && !known[x.StackID] {
			t.Errorf("%+v", x)
		}
	}
	if drawn != n || live != n || sum != n || n < 100 {
		t.Errorf("of %d objects %d are drawn in the state, %d in the samples, %d at the sites", n, drawn, live, sum)
	}
}

// TestDrawnHprof: stacks whose callers are drawn end in a frame that says it.
func TestDrawnHprof(t *testing.T) {
	_, v, _, from := exactRecording(t)
	for _, from := range []*sites.Callers{from, nil} {
		h, err := NewHprof(v, from)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := h.Write(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b.Bytes(), []byte(drawnFrame)) != (from != nil) {
			t.Errorf("drawn: %v, and the dump says the opposite", from != nil)
		}
		drawn := 0
		for k := range h.serials {
			if k.drawn {
				drawn++
			}
		}
		if want := map[bool]int{true: 2}[from != nil]; drawn != want {
			t.Errorf("%d stacks have drawn callers, want %d", drawn, want)
		}
	}
}
