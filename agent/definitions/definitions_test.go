package definitions

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

func frameIDs(d trace.Defs) (ids []uint64) {
	for _, f := range d.Frames {
		ids = append(ids, f.ID)
	}
	return ids
}

// TestFramesComeWhole: a stack stands in a file from its outermost frame on or not at all, and what is missing is
// counted once a file.
func TestFramesComeWhole(t *testing.T) {
	d := New()
	add := func(fs ...trace.Frame) []uint64 {
		return frameIDs(d.Add(trace.Defs{Frames: fs}))
	}
	need := func(id uint64) []uint64 { var out trace.Defs; d.Need(&out, id, 0); return frameIDs(out) }
	expect := func(got []uint64, missing uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) || d.Missing != missing {
			t.Errorf("frames %v, want %v; %d missing, want %d", got, want, d.Missing, missing)
		}
	}
	expect(add(trace.Frame{ID: 3, Parent: 2}, trace.Frame{ID: 4, Parent: 3}), 0)
	expect(need(4), 1)
	expect(need(4), 1)
	expect(add(trace.Frame{ID: 2, Parent: 1}, trace.Frame{ID: 1}), 1, 1, 2)
	expect(need(4), 1, 3, 4)
	expect(need(3), 1)
	d.NewFile()
	expect(add(trace.Frame{ID: 1}, trace.Frame{ID: 5, Parent: 2}), 1, 1, 2, 5) // 1 is not new, but 5 needs it
	expect(need(9), 2)
	expect(add(trace.Frame{ID: 7, Parent: 8}, trace.Frame{ID: 8, Parent: 7}), 2, 8, 7) // a ring of frames ends too
}

// TestUnloadedTypesAreDropped: an unloaded type is dropped at the end of its file, a loader with the last of its types.
// A type that is still listed stays.
func TestUnloadedTypesAreDropped(t *testing.T) {
	d := New()
	add := func(x trace.Defs) { d.Add(x) }
	ids := func() (types, loaders []uint64) {
		d.NewFile()
		x := d.All()
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
	ty := []trace.Type{{ID: 5, Size: 16, Loader: 1, Name: "A"}, {ID: 6, Size: 16, Loader: 2, Name: "B"},
		{ID: 7, Size: 16, Loader: 2, Name: "C"}}
	add(trace.Defs{Loaders: l[:1], Types: ty[:1]})
	before := d.Bytes
	add(trace.Defs{Loaders: l[1:], Types: ty[1:], GoneLoaders: []uint64{2}, GoneTypes: []uint64{6, 99}})
	expect("before", []uint64{5, 6, 7}, []uint64{1, 2})
	d.Forget(none)
	expect("one type of the loader is left", []uint64{5, 7}, []uint64{1, 2})
	add(trace.Defs{GoneTypes: []uint64{7}})
	d.Forget(func(id uint64) bool { return id == 7 })
	expect("listed", []uint64{5, 7}, []uint64{1, 2})
	add(trace.Defs{Loaders: l, Types: ty}) // all again
	d.Forget(none)
	expect("defined again", []uint64{5, 6, 7}, []uint64{1, 2})
	add(trace.Defs{GoneTypes: []uint64{6, 7}, GoneLoaders: []uint64{2}})
	d.Forget(none)
	expect("gone", []uint64{5}, []uint64{1})
	if d.Bytes != before || len(d.ofTypes) != 1 || len(d.unloaded.types)+len(d.unloaded.loaders) != 0 {
		t.Errorf("%d bytes, want %d; %+v %+v", d.Bytes, before, d.ofTypes, d.unloaded)
	}
	add(trace.Defs{Loaders: l, Types: ty})
	d.Recall()
	add(trace.Defs{Loaders: l[:1], Types: ty[:1]})
	d.Forget(none)
	expect("not defined again yet", []uint64{5, 6, 7}, []uint64{1, 2})
	d.Redefined()
	d.Forget(none)
	expect("not defined again", []uint64{5}, []uint64{1})
}

// TestDefinitionsAreBounded: names of the largest size that the format allows do not fill the agent's memory, nor do
// ones that come again.
func TestDefinitionsAreBounded(t *testing.T) {
	d := New()
	name := strings.Repeat("n", trace.MaxStr-8)
	for id := range uint64(2000) {
		d.Add(trace.Defs{Threads: []trace.Thread{{ID: id%1000 + 1, Name: fmt.Sprint(name, id)}}})
	}
	held := 0
	for text := range d.known.texts {
		held += len(text)
	}
	if held > maxDefBytes || d.Dropped < 1400 {
		t.Errorf("%d bytes are held, %d definitions were dropped", held, d.Dropped)
	}
	out := d.Add(trace.Defs{Types: []trace.Type{{ID: 7, Size: 16, Name: name}}})
	if len(out.Types) != 0 || !d.inFile.types.add(7) {
		t.Errorf("a type that is not kept is written all the same: %d", len(out.Types))
	}
}

// TestTablesEqualModel: what the tables give of any id is what plain maps would give. Some ids are far off, and some
// values fit in no compact form.
func TestTablesEqualModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	id := func() uint64 {
		switch rng.IntN(4) {
		case 0:
			return denseIDs - 2 + uint64(rng.IntN(4))
		case 1:
			return rng.Uint64()
		}
		return uint64(1 + rng.IntN(3*pageIDs))
	}
	d, methods, frames := New(), map[uint64]trace.Method{}, map[uint64]trace.Frame{}
	var all ids
	marked := map[uint64]bool{}
	for range 20000 {
		m := trace.Method{ID: id(), Class: fmt.Sprint("Lc", rng.IntN(20)), Name: "m", Flags: uint64(rng.IntN(2)),
			Lines: make([]trace.LineEntry, rng.IntN(3))}
		for i := range m.Lines {
			m.Lines[i].Line = rng.IntN(3)
		}
		f := trace.Frame{ID: id(), Parent: id(), Method: id(), BCI: int64(rng.Uint64()) >> rng.IntN(64)}
		d.Add(trace.Defs{Methods: []trace.Method{m}})
		methods[m.ID] = m
		if _, had := frames[f.ID]; !had { // the probe gives an id once
			d.Add(trace.Defs{Frames: []trace.Frame{f}})
			frames[f.ID] = f
		}
		switch x := id(); rng.IntN(3) {
		case 0:
			all.remove(x)
			delete(marked, x)
		default:
			if all.add(x) == marked[x] {
				t.Fatalf("id %d: marked %v", x, marked[x])
			}
			marked[x] = true
		}
	}
	for id, want := range methods {
		got, ok := d.Method(id)
		if len(want.Lines) == 0 {
			want.Lines, got.Lines = nil, nil
		}
		if !ok || !reflect.DeepEqual(got, want) {
			t.Fatalf("method %+v, want %+v", got, want)
		}
	}
	for id, want := range frames {
		if got, ok := d.Frame(id); !ok || got != want {
			t.Fatalf("frame %+v, want %+v", got, want)
		}
	}
	if _, ok := d.Frame(3 * denseIDs); ok || d.methods.n != len(methods) || d.Dropped != 0 {
		t.Errorf("%d methods, want %d; %d dropped", d.methods.n, len(methods), d.Dropped)
	}
}

// TestMemory: a program that loads the same classes again and again and starts threads for ever takes little, and what
// the tables say that they take is what they do.
func TestMemory(t *testing.T) {
	const loads, each = 2000, 30
	before := heapInUse()
	d := New()
	for i := range uint64(loads) {
		var x trace.Defs
		for k := range uint64(each) {
			m := trace.Method{ID: i*each + k + 1, Class: fmt.Sprint("Lshop/plugin/Plugin", k/10, ";"),
				Name: fmt.Sprint("method", k), Sig: "(Ljava/lang/String;I)V", File: "Plugin.java"}
			for l := range 12 {
				m.Lines = append(m.Lines, trace.LineEntry{BCI: 7 * l, Line: int(k)*20 + l})
			}
			x.Methods = append(x.Methods, m)
			for f := range uint64(10) {
				x.Frames = append(x.Frames, trace.Frame{ID: (m.ID-1)*10 + f + 1, Parent: (m.ID - 1) * 10, Method: m.ID})
			}
		}
		x.Threads = []trace.Thread{{ID: i + 1, Name: "worker-#"}}
		d.Add(x)
	}
	held := int(heapInUse() - before)
	t.Logf("%d methods, %d frames: %d bytes held, %d counted", loads*each, loads*each*10, held, d.Bytes)
	if held > 24<<20 || d.Bytes < held/2 {
		t.Error("too many bytes, or too few of them are counted")
	}
	runtime.KeepAlive(d)
}

// TestScattered: ids far from each other make each page hold one of them. What that takes is counted, so that the
// recording of such a JVM, and no other, is dropped when the agent's memory is used up.
func TestScattered(t *testing.T) {
	before := heapInUse()
	d := New()
	for id := uint64(1); id < denseIDs; id += pageIDs {
		d.Add(trace.Defs{Methods: []trace.Method{{ID: id, Name: "m"}}, Frames: []trace.Frame{{ID: id, Method: id}},
			Threads: []trace.Thread{{ID: id, Name: "t"}}})
	}
	held := int(heapInUse() - before)
	if d.Bytes < held*3/4 || d.Bytes > maxDefBytes {
		t.Errorf("%d bytes are held, %d are counted", held, d.Bytes)
	}
	runtime.KeepAlive(d)
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
