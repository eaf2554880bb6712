package agent

import (
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func frameIDs(d trace.Defs) (ids []uint64) {
	for _, f := range d.Frames {
		ids = append(ids, f.ID)
	}
	return ids
}

// TestFramesComeWhole: a stack stands in a file from its outermost frame on or not at all, and what is missing is counted once a file.
func TestFramesComeWhole(t *testing.T) {
	d := newDefs()
	add := func(fs ...trace.Frame) []uint64 {
		out, err := d.add(trace.EncodeDefs(trace.Defs{Frames: fs}))
		if err != nil {
			t.Fatal(err)
		}
		return frameIDs(out)
	}
	need := func(id uint64) []uint64 { var out trace.Defs; d.need(&out, id, 0); return frameIDs(out) }
	expect := func(got []uint64, missing uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) || d.missing != missing {
			t.Errorf("frames %v, want %v; %d missing, want %d", got, want, d.missing, missing)
		}
	}
	expect(add(trace.Frame{ID: 3, Parent: 2}, trace.Frame{ID: 4, Parent: 3}), 0)
	expect(need(4), 1)
	expect(need(4), 1)
	expect(add(trace.Frame{ID: 2, Parent: 1}, trace.Frame{ID: 1}), 1, 1, 2)
	expect(need(4), 1, 3, 4)
	expect(need(3), 1)
	d.newFile()
	expect(add(trace.Frame{ID: 1}, trace.Frame{ID: 5, Parent: 2}), 1, 1, 2, 5) // 1 is not new, but 5 needs it
	expect(need(9), 2)
	expect(add(trace.Frame{ID: 7, Parent: 8}, trace.Frame{ID: 8, Parent: 7}), 2, 8, 7) // a ring of frames ends too
}

// TestUnusedSitesOutliveTheAgent: sites that the probe told and no sample had used when the agent ended are used by samples that nobody but
// the next agent reads, before the probe could tell them again.
func TestUnusedSitesOutliveTheAgent(t *testing.T) {
	mem := &memStore{limit: 1 << 20}
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.Config{Seed: 9})
	r.play(p, m, 2)
	const id = 1 << 30
	r.commit(p, []trace.Block{trace.EncodeDefs(trace.Defs{
		Methods: []trace.Method{{ID: id, Class: "Lshop/Late;", Name: "late"}},
		Frames:  []trace.Frame{{ID: id, Method: id}, {ID: id + 1, Parent: id, Method: id}},
		Threads: []trace.Thread{{ID: id, Name: "late"}},
	})})
	wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	r.stop()
	b := trace.EncodeSamples([]trace.Sample{{ID: id, Time: uint64(time.Hour), Thread: id, Type: 1, Size: 16, Frame: id + 1}})
	r.commit(p, []trace.Block{b})
	p.End(shmring.StateGoodbye, "") // it tells nothing again
	r.start(t.TempDir())
	r.drain()
	var got trace.Defs
	used := false
	for b, err := range trace.Blocks(mem.files[len(mem.files)-1]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindDefs && !used {
			d, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			got.Methods, got.Frames, got.Threads = append(got.Methods, d.Methods...), append(got.Frames, d.Frames...), append(got.Threads, d.Threads...)
		}
		used = used || b.Kind == trace.KindSamples
	}
	if !used || !slices.Equal(frameIDs(got), []uint64{id, id + 1}) || len(got.Methods) != 1 || len(got.Threads) != 1 {
		t.Errorf("before the sample (%v) stand %+v", used, got)
	}
}
