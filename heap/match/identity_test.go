package match

import (
	"testing"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/state/statetest"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/trace"
	"pgregory.net/rapid"
)

// TestSlide does the same on old spaces of few kinds of objects, in which nearly everything could be anything: dead
// wood is left at the bottom under fillers, and young objects of the same kinds come behind.
func TestSlide(t *testing.T) {
	const ints, text, node, pad, base = 1, 2, 3, 4, 1000
	proven, listed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		m := &Matcher{Symbols: symbols.New()}
		had := state.New()
		m.Symbols.JVM = trace.JVM{Collector: trace.CollectorSerial,
			Major: rapid.SampledFrom([]uint64{17, 25}).Draw(t, "major")}
		for _, ty := range []trace.Type{{ID: ints, Name: "[I", Flags: trace.TypeArray, Size: 16, Log2: 2},
			{ID: text, Name: "T", Size: 16}, {ID: node, Name: "N", Size: 24},
			{ID: pad, Name: "jdk/internal/vm/FillerArray", Size: 16, Log2: 2,
				Flags: trace.TypeFiller | trace.TypeArray}} {
			m.Symbols.Types[ty.ID] = ty
		}
		object := func() state.Object {
			o := state.Object{Type: rapid.Uint32Range(ints, node).Draw(t, "type"), Words: 2}
			if o.Type == node {
				o.Words = 3
			}
			return o
		}
		type outcome struct {
			state.Object
			dead bool
			id   uint32 // 0: from young space
		}
		var all []outcome
		dying := rapid.IntRange(0, 9).Draw(t, "dying")
		sampling := rapid.SampledFrom([]int{2, 5, 30}).Draw(t, "sampling")
		at := uint64(base)
		for i := range rapid.IntRange(0, 60).Draw(t, "old") {
			f := outcome{object(), rapid.IntRange(0, 9).Draw(t, "dies") < dying, uint32(i + 1)}
			f.Addr, f.Birth = at, f.id
			if rapid.IntRange(0, sampling).Draw(t, "sampled") == 0 {
				f.Sample = uint64(i + 1)
			}
			at += f.Words
			statetest.Put(had, f.Object)
			all = append(all, f)
		}
		old := at - base
		young := uint64(0)
		wood := rapid.IntRange(0, len(all)).Draw(t, "wood") // so many stay where they are, the dead under fillers
		for range rapid.IntRange(0, 12).Draw(t, "young") {
			all = append(all, outcome{Object: object()})
			young += all[len(all)-1].Words
		}
		next := state.New()
		next.Codes = had.Codes
		s := &trace.Sync{GC: 1000}
		truth := map[uint64]outcome{}
		at = base
		fill := func(to uint64) {
			if to-at < 2 {
				at = to
				return
			}
			f := state.Object{Addr: at, Type: pad, Length: (to - at - 2) * 2, Words: to - at}
			if m.Symbols.JVM.Major == 17 {
				f.Type = ints
			}
			statetest.Put(next, f)
			at = to
		}
		for i, f := range all {
			if f.dead {
				continue
			}
			if i < wood {
				fill(f.Addr)
			}
			was := f.Object
			f.Addr = at
			f.Birth, f.AtLeast, f.Sample = 1000, true, 0
			statetest.Put(next, f.Object)
			truth[at] = f
			if was.Sample != 0 {
				s.Samples = append(s.Samples, trace.LiveSample{ID: was.Sample, Addr: at})
			}
			at += f.Words
		}
		garbage := rapid.Uint64Range(0, 30).Draw(t, "garbage")
		s.Spaces = []trace.Space{{Kind: trace.SpaceOld, Bottom: base, Top: at, End: 10000}}
		m.Spaces = []trace.Space{
			{Kind: trace.SpaceEden, UsedBefore: (young + garbage) * 8},
			{Kind: trace.SpaceOld, Bottom: base, Top: at, End: 10000, UsedBefore: old * 8},
		}
		counted := m.Identify(s, &trace.Pause{Kind: trace.PauseFull}, had, next)
		n := 0
		next.Each(func(o state.Object) bool {
			f, ok := truth[o.Addr]
			if !ok { // a filler
				return true
			}
			listed++
			if !o.AtLeast {
				n++
				if f.id != o.Birth {
					t.Fatalf("at %d: proven to be %d, is %d", o.Addr, o.Birth, f.id)
				}
			} else if f.id > o.Birth && f.id != 0 {
				t.Fatalf("at %d: at least as old as %d, is %d", o.Addr, o.Birth, f.id)
			} else if f.id == 0 && o.Birth != 1000 {
				t.Fatalf("at %d: a young object counts as old as %d", o.Addr, o.Birth)
			}
			return true
		})
		if uint64(n) != counted {
			t.Fatalf("%d proven, counted %d", n, counted)
		}
		proven += n
	})
	t.Logf("%d of %d proven", proven, listed)
	if proven*10 < listed {
		t.Errorf("%d of %d proven", proven, listed)
	}
}
