package agent

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestStormKeepsItsHistory: after a calm, ten minutes (of the stream) of one full collection a second, whose listings
// alone would fill the ring several times. The recording still begins with the first collection, and each listing is
// there or reported.
func TestStormKeepsItsHistory(t *testing.T) {
	r := &rig{t: t, dir: t.TempDir()}
	const m = 8 << 20
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"), Watch: []string{r.dir}, MaxTraceSize: m})
	if err != nil {
		t.Fatal(err)
	}
	r.a = a
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	model := tracetest.New(tracetest.Config{Seed: 3, Depth: trace.DepthFull})
	r.play(p, model, 30)
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, a)
	const storm = 600
	rnd := rand.New(rand.NewPCG(1, 1))
	for range storm {
		ep := model.FullGC()
		for i, b := range ep.Blocks {
			switch b.Kind {
			case trace.KindSync:
				ep.Blocks[i] = padded(t, b, rnd)
			case trace.KindEpoch:
				ep.Blocks[i] = long(t, b)
			}
		}
		r.commit(p, ep.Blocks)
		model.Pass(uint64(time.Second))
	}
	r.commit(p, []trace.Block{model.End()})
	if err := p.State(shmring.StateGoodbye, ""); err != nil {
		t.Fatal(err)
	}
	r.drain()
	st := a.Status()[0]
	rec, err := ringstore.OpenRecording(st.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	first, epochs, logged, storms, kept, stored := uint64(0), 0, 0, 0, 0, int64(0)
	for _, f := range rec.Files {
		for h, err := range f.Headers() {
			if err != nil {
				t.Fatal(err)
			}
			if h.Flags&ringstore.FlagListing != 0 {
				kept++
				stored += int64(h.Stored)
			}
		}
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				if e, err := trace.DecodeEpoch(b); err == nil {
					if epochs++; first == 0 {
						first = e.Pause.GC
					}
				}
			case trace.KindMeta:
				if m, err := trace.DecodeMeta(b); err == nil {
					logged += len(m.Unlisted)
					storms += len(m.Storms)
				}
			}
		}
	}
	all := stored / int64(max(kept, 1)) * storm // had they been kept
	t.Logf("%d listings kept with %d bytes, %d left out; all would take %d bytes; ring %d of %d, %d files, %d evicted",
		kept, stored, logged, all, st.TraceBytes, st.TraceLimit, st.Files, st.FilesEvicted)
	if all < 2*m {
		t.Errorf("%d bytes of listings are no storm for a ring of %d", all, m)
	}
	if first != 1 || epochs != 30+storm || st.FilesEvicted != 0 {
		t.Errorf("the recording begins with collection %d and has %d of %d; %+v", first, epochs, 30+storm, st)
	}
	if storms != 1 {
		t.Errorf("%d storms are reported, not one", storms)
	}
	if uint64(logged) != st.ListingsSkipped || kept+logged < storm {
		t.Errorf("%d listings are reported as left out, %d were", logged, st.ListingsSkipped)
	}
}

// long makes a collection take six tenths of a second.
func long(t *testing.T, b trace.Block) trace.Block {
	e, err := trace.DecodeEpoch(b)
	if err != nil {
		t.Fatal(err)
	}
	e.Pause.Dur = 6e8
	out := trace.EncodeEpoch(e)
	out.Seq, out.Version = b.Seq, b.Version
	return out
}

// padded makes a listing as large as that of a heap with thousands of sampled objects, which do not compress.
func padded(t *testing.T, b trace.Block, rnd *rand.Rand) trace.Block {
	y, err := trace.DecodeSync(b)
	if err != nil {
		t.Fatal(err)
	}
	last := uint64(1 << 32)
	for range 5000 {
		last += 1 + rnd.Uint64N(100)
		y.Samples = append(y.Samples, trace.LiveSample{ID: last, Addr: rnd.Uint64N(1 << 20), Birth: y.GC,
			Interval: 512 << 10, Size: 8 + 8*rnd.Uint64N(1000)})
	}
	out := trace.EncodeSync(y)
	out.Seq, out.Version = b.Seq, b.Version
	return out
}
