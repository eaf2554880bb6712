package session

import (
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
	d := newDefinitions()
	add := func(fs ...trace.Frame) []uint64 {
		return frameIDs(d.add(trace.Defs{Frames: fs}))
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

// TestUnloadedTypesAreDropped: an unloaded type is dropped at the end of its file, a loader with the last of its types.
// A type that is still listed stays.
func TestUnloadedTypesAreDropped(t *testing.T) {
	d := newDefinitions()
	add := func(x trace.Defs) { d.add(x) }
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
	ty := []trace.Type{{ID: 5, Size: 16, Loader: 1, Name: "A"}, {ID: 6, Size: 16, Loader: 2, Name: "B"},
		{ID: 7, Size: 16, Loader: 2, Name: "C"}}
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
	expect("defined again", []uint64{5, 6, 7}, []uint64{1, 2})
	add(trace.Defs{GoneTypes: []uint64{6, 7}, GoneLoaders: []uint64{2}})
	d.forget(none)
	expect("gone", []uint64{5}, []uint64{1})
	if d.bytes != before || len(d.ofTypes) != 1 || len(d.unloaded.types)+len(d.unloaded.loaders) != 0 {
		t.Errorf("%d bytes, want %d; %+v %+v", d.bytes, before, d.ofTypes, d.unloaded)
	}
	add(trace.Defs{Loaders: l, Types: ty})
	d.recall()
	add(trace.Defs{Loaders: l[:1], Types: ty[:1]})
	d.forget(none)
	expect("not defined again yet", []uint64{5, 6, 7}, []uint64{1, 2})
	d.redefined()
	d.forget(none)
	expect("not defined again", []uint64{5}, []uint64{1})
}

// TestDefinitionsAreBounded: names of the largest size that the format allows do not fill the agent's memory, nor do
// ones that come again.
func TestDefinitionsAreBounded(t *testing.T) {
	d := newDefinitions()
	name := strings.Repeat("n", trace.MaxStr)
	for id := range uint64(2000) {
		d.add(trace.Defs{Threads: []trace.Thread{{ID: id%1000 + 1, Name: name}}})
	}
	held := 0
	for _, th := range d.threads {
		held += len(th.Name)
	}
	if held > maxDefBytes || d.dropped < 1400 {
		t.Errorf("%d bytes are held, %d definitions were dropped", held, d.dropped)
	}
	out := d.add(trace.Defs{Types: []trace.Type{{ID: 7, Size: 16, Name: name}}})
	if len(out.Types) != 0 || len(d.inFile.types) != 0 {
		t.Errorf("a type that is not kept is written all the same: %d", len(out.Types))
	}
}
