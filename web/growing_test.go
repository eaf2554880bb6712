package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// grown is a viewer of a recording that grows.
type grown struct {
	*Server
	mu      sync.Mutex
	all     []trace.Block // what is recorded at the end
	have    int           // how many of them are recorded now
	counts  int           // how many were read by counting replays
	opened  int           // how often a counting replay was opened
	removed uint64        // the first collection of the recording
}

// from reads what is recorded.
type from struct {
	g      *grown
	at     int
	counts bool
}

func (f *from) Next() (trace.Block, error) {
	f.g.mu.Lock()
	defer f.g.mu.Unlock()
	if f.at == f.g.have {
		return trace.Block{}, io.EOF
	}
	if f.at++; f.counts {
		f.g.counts++
	}
	return f.g.all[f.at-1], nil
}

func newGrown(t *testing.T, bs []trace.Block) *grown {
	g := &grown{all: bs}
	open := func(counts bool) func(func(done, total int64)) (*Input, error) {
		return func(func(done, total int64)) (*Input, error) {
			if counts {
				g.opened++
			}
			return &Input{Source: &from{g: g, counts: counts}, Close: func() {},
				Oldest: func() uint64 { return g.removed }}, nil
		}
	}
	g.Server = New(Config{FollowCensus: open(true), Follow: open(false),
		Open: func(func(done, total int64)) (*Input, error) { return nil, errors.New("read from the start") }})
	t.Cleanup(g.Close)
	g.cfg.Version = func() (string, bool) { // New would watch it
		g.mu.Lock()
		defer g.mu.Unlock()
		return strconv.Itoa(g.have), g.have == len(g.all)
	}
	return g
}

// upTo makes the first n blocks those that are recorded.
func (g *grown) upTo(n int) {
	g.mu.Lock()
	g.have = n
	g.mu.Unlock()
}

// TestGrowingOverview: the overview of a recording that grows reads each block once. It is that of a recording that is
// read at once, also when the recording has ended. It begins anew when the ring has evicted a file.
func TestGrowingOverview(t *testing.T) {
	rec, err := ringstore.OpenRecording("testdata/window.heapcam")
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var bs []trace.Block
	var ends []int // where frames may end: before an epoch
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			if b.Kind == trace.KindEpoch && len(bs) > 0 {
				ends = append(ends, len(bs))
			}
			b.Payload = slices.Clone(b.Payload)
			bs = append(bs, b)
		}
	}
	ends = append(ends, len(bs))
	g := newGrown(t, bs)
	rng := rand.New(rand.NewPCG(5, 6))
	verdicts := 0
	for i := 1; i < len(ends); i = min(i+1+rng.IntN(9), max(i+1, len(ends)-1)) {
		g.upTo(ends[i])
		verdicts += sameOverview(t, g, bs[:ends[i]], i == len(ends)-1)
	}
	if verdicts == 0 {
		t.Error("no overview had a verdict")
	}
	if g.opened != 1 || g.counts != len(bs) {
		t.Errorf("the recording was opened %d times, and %d of %d blocks were read", g.opened, g.counts, len(bs))
	}

	g = newGrown(t, bs)
	for i, oldest := range []uint64{0, 1, 1} {
		g.upTo(ends[20+i])
		g.removed = oldest
		sameOverview(t, g, bs[:ends[20+i]], false)
	}
	if want := ends[20] + ends[22]; g.opened != 2 || g.counts != want {
		t.Errorf("with an eviction: opened %d times, %d blocks were read, want %d", g.opened, g.counts, want)
	}
}

// sameOverview compares the overview with a report of bs. It returns the number of verdicts.
func sameOverview(t *testing.T, g *grown, bs []trace.Block, over bool) int {
	t.Helper()
	answer, err := g.overviewNow(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var got Overview
	if err := json.Unmarshal(answer.(json.RawMessage), &got); err != nil {
		t.Fatal(err)
	}
	took := cost.New()
	want, err := analysis.MakeReport(heap.NewReplay(&metered{&paused{&blocks{slices.Clone(bs)}, &over}, took, nil}),
		leak.Options{MinGrowth: leak.DefaultMinGrowth})
	if err != nil {
		t.Fatal(err)
	}
	took.Close()
	want.Account(took)
	a, err := json.Marshal(got.Report)
	b, err2 := json.Marshal(want)
	if err = errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Fatalf("the report of %d blocks is\n%s\nread at once it is\n%s", len(bs), a, b)
	}
	return len(want.Verdicts)
}
