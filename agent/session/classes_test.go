package session

import (
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestUnusedSitesOutliveTheAgent: sites that the probe defined and no sample had used when the agent ended are used by
// samples that nobody but the next agent reads, before the probe could tell them again.
func TestUnusedSitesOutliveTheAgent(t *testing.T) {
	mem := &sessiontest.MemStore{Limit: 1 << 20}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.Config{Seed: 9})
	r.play(m, 2)
	const id = 1 << 30
	r.commit([]trace.Block{trace.EncodeDefs(trace.Defs{
		Methods: []trace.Method{{ID: id, Class: "Lshop/Late;", Name: "late"}},
		Frames:  []trace.Frame{{ID: id, Method: id}, {ID: id + 1, Parent: id, Method: id}},
		Threads: []trace.Thread{{ID: id, Name: "late"}},
	})})
	r.drained()
	r.stop()
	b := trace.EncodeSamples([]trace.Sample{{ID: id, Time: uint64(time.Hour), Thread: id, Type: 1, Size: 16,
		Frame: id + 1}})
	r.commit([]trace.Block{b})
	p.End(shmring.StateGoodbye, "") // it tells nothing again
	r.start()
	r.finish()
	var got trace.Defs
	used := false
	for b, err := range trace.Blocks(mem.Files()[len(mem.Files())-1]) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind == trace.KindDefs && !used {
			d, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			got.Methods = append(got.Methods, d.Methods...)
			got.Frames = append(got.Frames, d.Frames...)
			got.Threads = append(got.Threads, d.Threads...)
		}
		used = used || b.Kind == trace.KindSamples
	}
	var frames []uint64
	for _, f := range got.Frames {
		frames = append(frames, f.ID)
	}
	if !used || !slices.Equal(frames, []uint64{id, id + 1}) || len(got.Methods) != 1 || len(got.Threads) != 1 {
		t.Errorf("before the sample (%v) stand %+v", used, got)
	}
}

// TestChurnOfClasses: 100,000 classes come and go. What the agent holds and what stands at the head of each file are
// those that are there; files read alone; one that is said to have gone and is listed stays; and an agent that comes
// later forgets what its files define and the probe does not define again.
func TestChurnOfClasses(t *testing.T) {
	const steps, each, behind = 40, 2500, 3 // a class goes so many collections after it came
	mem := &sessiontest.MemStore{Limit: 200 << 10}
	r := newRig(t, mem)
	p := r.p
	m := tracetest.New(tracetest.All(7, trace.CollectorG1, trace.DepthSurvivors))
	all := map[uint64]*tracetest.Epoch{}
	step := func() {
		for _, ep := range r.play(m, 1) {
			if !ep.Dropped {
				all[ep.Pause.GC] = ep
			}
		}
		r.drained()
	}
	step()
	string1 := m.Defs().Types[0].ID
	r.commit([]trace.Block{trace.EncodeDefs(trace.Defs{GoneTypes: []uint64{string1}})}) // which it has objects of
	class := func(step, i int) uint64 { return uint64(1000 + step*each + i) }
	for k := range steps {
		var x trace.Defs
		for i := range each {
			id := class(k, i)
			x.Loaders = append(x.Loaders, trace.Loader{ID: id, Name: "shop/PluginLoader"})
			x.Types = append(x.Types, trace.Type{ID: id, Size: 24, Loader: id, Name: "shop/Plugin$Generated"})
			if k >= behind {
				x.GoneTypes = append(x.GoneTypes, class(k-behind, i))
				x.GoneLoaders = append(x.GoneLoaders, class(k-behind, i))
			}
		}
		r.commit([]trace.Block{trace.EncodeDefs(x)})
		step()
	}
	heads := func() (most, last int, has bool) {
		for _, f := range mem.Files() {
			last, has = 0, false
			for b, err := range trace.Blocks(f) {
				if err != nil {
					t.Fatal(err)
				}
				if b.Kind == trace.KindSync || b.Kind == trace.KindEpoch {
					break
				}
				if b.Kind == trace.KindDefs {
					d, err := trace.DecodeDefs(b)
					if err != nil {
						t.Fatal(err)
					}
					last += len(d.Types)
					has = has || slices.ContainsFunc(d.Types, func(ty trace.Type) bool { return ty.ID == string1 })
				}
			}
			most = max(most, last)
		}
		return
	}
	most, _, has := heads()
	bytes := r.s.Status().AgentBytes
	r.stop()
	held, sized := r.s.defs.NumTypes(), r.s.heap.live.types.Len()
	t.Logf("%d files; %d types at a head at most; %d types and %d bytes held, %d in the table of sizes",
		len(mem.Files()), most, held, bytes, sized)
	if len(mem.Files()) < 10 || most > 8*each || held > 8*each || sized > 20*each ||
		bytes > 8*each*400 { // 400: a type and a loader
		t.Error("classes that have gone are kept")
	}
	if !has {
		t.Error("a class that is listed was forgotten")
	}
	sessiontest.CheckFiles(t, mem.Files(), all)

	r.start()
	r.wait(func() bool { return p.Peek64(shmring.OffRedefine) > p.Peek64(shmring.OffRedefineDone) })
	r.commit(m.Head())
	p.Answer(shmring.OffRedefine, shmring.OffRedefineDone)
	for range 5 {
		r.play(m, 20)
		r.drained()
	}
	p.End(shmring.StateGoodbye, "")
	r.finish()
	if _, last, _ := heads(); last > 50 {
		t.Errorf("%d types at the head of the newest file, of an agent that got none of those that have gone",
			last)
	}
}
