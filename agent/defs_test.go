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

// TestForget: what has gone leaves with the file that it stands in, a loader with the last of its types, and what is listed all the same stays.
func TestForget(t *testing.T) {
	d := newDefs()
	add := func(x trace.Defs) {
		t.Helper()
		if _, err := d.add(trace.EncodeDefs(x)); err != nil {
			t.Fatal(err)
		}
	}
	ids := func() (types, loaders []uint64) {
		d.newFile()
		x := d.all()
		for _, ty := range x.Types {
			types = append(types, ty.ID)
		}
		for _, l := range x.Loaders {
			loaders = append(loaders, l.ID)
		}
		return
	}
	expect := func(what string, types, loaders []uint64) {
		t.Helper()
		if ty, l := ids(); !slices.Equal(ty, types) || !slices.Equal(l, loaders) {
			t.Errorf("%s: types %v, loaders %v; want %v, %v", what, ty, l, types, loaders)
		}
	}
	none := func(uint64) bool { return false }
	l := []trace.Loader{{ID: 1, Name: "(boot)"}, {ID: 2, Name: "a/Loader"}}
	ty := []trace.Type{{ID: 5, Size: 16, Loader: 1, Name: "A"}, {ID: 6, Size: 16, Loader: 2, Name: "B"}, {ID: 7, Size: 16, Loader: 2, Name: "C"}}
	add(trace.Defs{Loaders: l[:1], Types: ty[:1]})
	before := d.bytes
	add(trace.Defs{Loaders: l[1:], Types: ty[1:], GoneLoaders: []uint64{2}, GoneTypes: []uint64{6, 99}})
	expect("before", []uint64{5, 6, 7}, []uint64{1, 2})
	d.forget(none)
	expect("one type of the loader is left", []uint64{5, 7}, []uint64{1, 2})
	add(trace.Defs{GoneTypes: []uint64{7}})
	d.forget(func(id uint64) bool { return id == 7 })
	expect("listed", []uint64{5, 7}, []uint64{1, 2})
	add(trace.Defs{Loaders: l, Types: ty}) // all again
	d.forget(none)
	expect("told again", []uint64{5, 6, 7}, []uint64{1, 2})
	add(trace.Defs{GoneTypes: []uint64{6, 7}, GoneLoaders: []uint64{2}})
	d.forget(none)
	expect("gone", []uint64{5}, []uint64{1})
	if d.bytes != before || len(d.ofTypes) != 1 || len(d.gone.types)+len(d.gone.loaders) != 0 {
		t.Errorf("%d bytes, want %d; %+v %+v", d.bytes, before, d.ofTypes, d.gone)
	}
	add(trace.Defs{Loaders: l, Types: ty})
	d.recall()
	add(trace.Defs{Loaders: l[:1], Types: ty[:1]})
	d.forget(none)
	expect("not told again yet", []uint64{5, 6, 7}, []uint64{1, 2})
	d.retold()
	d.forget(none)
	expect("not told again", []uint64{5}, []uint64{1})
}

// TestChurnOfClasses: 100,000 classes come and go. What the agent holds and what stands at the head of each file are those that are there; files read
// alone; one that is said to have gone and is listed stays; and an agent that comes later forgets what its files told and the probe does not tell again.
func TestChurnOfClasses(t *testing.T) {
	const steps, each, behind = 40, 2500, 3 // a class goes so many collections after it came
	mem := &memStore{limit: 200 << 10}
	r := newRig(t, mem)
	p, err := ringtest.Create(r.dir, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.All(7, trace.CollectorG1, trace.DepthSurvivors))
	all := map[uint64]*tracetest.Epoch{}
	step := func() {
		for _, ep := range r.play(p, m, 1) {
			if !ep.Dropped {
				all[ep.Pause.GC] = ep
			}
		}
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	step()
	string1 := m.Defs().Types[0].ID
	r.commit(p, []trace.Block{trace.EncodeDefs(trace.Defs{GoneTypes: []uint64{string1}})}) // which it has objects of
	class := func(step, i int) uint64 { return uint64(1000 + step*each + i) }
	for k := range steps {
		var x trace.Defs
		for i := range each {
			id := class(k, i)
			x.Loaders = append(x.Loaders, trace.Loader{ID: id, Name: "shop/PluginLoader"})
			x.Types = append(x.Types, trace.Type{ID: id, Size: 24, Loader: id, Name: "shop/Plugin$Generated"})
			if k >= behind {
				x.GoneTypes, x.GoneLoaders = append(x.GoneTypes, class(k-behind, i)), append(x.GoneLoaders, class(k-behind, i))
			}
		}
		r.commit(p, []trace.Block{trace.EncodeDefs(x)})
		step()
	}
	heads := func() (most, last int, has bool) {
		for _, f := range mem.files {
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
	var s *session
	r.a.mu.Lock()
	for _, e := range r.a.sessions {
		s = e.s
	}
	r.a.mu.Unlock()
	r.stop() // what follows is its goroutine's
	held, bytes := len(s.defs.types), s.defs.bytes
	t.Logf("%d files; %d types at a head at most; %d types and %d bytes held, %d in the table of sizes", len(mem.files), most, held, bytes, s.live.types.Len())
	if len(mem.files) < 10 || most > 8*each || held > 8*each || s.live.types.Len() > 20*each {
		t.Error("classes that have gone are kept")
	}
	if !has {
		t.Error("a class that is listed was forgotten")
	}
	checkFiles(t, mem.files, all)

	r.start(t.TempDir())
	wait(t, func() bool { return p.Peek64(shmring.OffRedefine) > p.Peek64(shmring.OffRedefineDone) }, r.a)
	r.commit(p, m.Head())
	p.Answer(shmring.OffRedefine, shmring.OffRedefineDone)
	for range 5 {
		r.play(p, m, 20)
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, r.a)
	}
	p.End(shmring.StateGoodbye, "")
	r.drain()
	if _, last, _ := heads(); last > 50 {
		t.Errorf("%d types at the head of the newest file, of an agent that was told none of those that have gone", last)
	}
}
