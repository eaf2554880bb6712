package analysis

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// diffCase is a recording whose objects' identities are known, and two of its collections.
type diffCase struct {
	blocks   []trace.Block
	truth    map[uint64]map[uint64]tracetest.Object // by collection and identity
	from, to uint64
}

// drawDiff makes a case; ok is false if no state is known.
func drawDiff(t *rapid.T) (d diffCase, ok bool) {
	collector, depth := rapid.Uint64Range(1, 3).Draw(t, "collector"), rapid.Uint64Range(2, 3).Draw(t, "depth")
	m := tracetest.New(tracetest.All(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"), collector, depth))
	d.truth = map[uint64]map[uint64]tracetest.Object{}
	var known []uint64
	for i := range rapid.IntRange(3, 10).Draw(t, "steps") {
		var e *tracetest.Epoch
		if rapid.IntRange(0, 5).Draw(t, "full") == 5 {
			e = m.FullGC()
		} else {
			e = m.Step(i%5 == 0)
		}
		d.blocks = append(d.blocks, e.Blocks...)
		if e.Known && !e.Dropped {
			at := map[uint64]tracetest.Object{}
			for _, o := range e.State {
				at[o.ID] = o
			}
			d.truth[e.Pause.GC] = at
			known = append(known, e.Pause.GC)
		}
	}
	if len(known) == 0 {
		return d, false
	}
	i := rapid.IntRange(0, len(known)-1).Draw(t, "from")
	j := rapid.IntRange(i, len(known)-1).Draw(t, "to")
	d.from, d.to = known[i], known[j]
	return d, true
}

// diff compares the two collections, and gives the replay, which knows the names.
func (d *diffCase) diff(t *rapid.T, lib *classify.Library, by string) (*DiffReport, *heap.Replay) {
	c, err := lib.By(by)
	if err != nil {
		t.Fatal(err)
	}
	r := heap.NewReplay(&analysistest.Source{B: slices.Clone(d.blocks)})
	rep, err := Diff(r, d.from, d.to, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rep, r
}

// diffCounts are the objects and bytes of a group.
type diffCounts struct{ died, permanent, born [2]uint64 }

// reference counts the groups by identities in maps.
func (d *diffCase) reference(r *heap.Replay, spec string) map[string]*diffCounts {
	ref := map[string]*diffCounts{}
	count := func(o tracetest.Object, pick func(*diffCounts) *[2]uint64) {
		path := ""
		see := func() {
			c := ref[path]
			if c == nil {
				c = &diffCounts{}
				ref[path] = c
			}
			n := pick(c)
			n[0]++
			n[1] += o.Words * 8
		}
		see()
		for _, k := range strings.Split(spec, ", ") {
			path += "/" + diffKey(r, k, o)
			see()
		}
	}
	first, last := d.truth[d.from], d.truth[d.to]
	for id, o := range first {
		if now, ok := last[id]; ok {
			count(now, func(c *diffCounts) *[2]uint64 { return &c.permanent })
		} else {
			count(o, func(c *diffCounts) *[2]uint64 { return &c.died })
		}
	}
	for id, o := range last {
		if _, ok := first[id]; !ok {
			count(o, func(c *diffCounts) *[2]uint64 { return &c.born })
		}
	}
	return ref
}

// diffKey is the key that classifier k should give o.
func diffKey(r *heap.Replay, k string, o tracetest.Object) string {
	x := refObject{Object: heap.Object{Type: o.Type, Length: o.Length, Words: o.Words},
		class: r.TypeName(o.Type), array: r.Types[uint64(o.Type)].Flags&1 != 0}
	switch {
	case k == "size":
		return refKeys["size"].keys(&x)[0]
	case k == "space": // its kind
		return cmp.Or(spaceKinds[o.Space], classify.UnknownSpace)
	case k == "spacetype":
		return cmp.Or(map[uint64]string{trace.SpaceEden: "eden", trace.SpaceSurvivor: "survivor",
			trace.SpaceFree: classify.UnknownSpace}[o.Space], "old")
	case refKeys[k].keys != nil:
		return refKeys[k].keys(&x)[0]
	case strings.HasPrefix(x.class, "java"):
		return "java"
	default:
		return "other"
	}
}

// hold says what of a group's figures its true counts contradict, "" if nothing does.
func (want *diffCounts) hold(c *Change, bySpace bool) string {
	for k, got := range []Changes{c.Objects, c.Bytes} {
		for _, x := range []struct {
			name string
			r    Range
			want uint64
		}{{"died", got.Died, want.died[k]}, {"permanent", got.Permanent, want.permanent[k]},
			{"born", got.Born, want.born[k]}} {
			if x.r.Low > x.want || x.r.High < x.want || x.r.Value < x.r.Low || x.r.Value > x.r.High {
				return fmt.Sprintf("%s %+v, truth %d (kind of figure %d)", x.name, x.r, x.want, k)
			}
		}
		before, after := want.died[k]+want.permanent[k], want.permanent[k]+want.born[k]
		if bySpace && (got.Before.Low > before || got.Before.High < before) ||
			!bySpace && (got.Before.Value != before || got.After.Value != after) {
			return fmt.Sprintf("before %+v after %+v, truth %+v", got.Before, got.After, *want)
		}
	}
	return ""
}

// TestDiffAgainstReference compares diffs with the truth of a model that knows each object's identity: what died,
// stayed and was born between two collections, in each group. Where the diff says that it is exact it must be equal;
// else the truth lies within its bounds.
func TestDiffAgainstReference(t *testing.T) {
	lib := classify.NewLibrary()
	exact, bounded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		x, ok := drawDiff(t)
		if !ok {
			return
		}
		spec := rapid.SampledFrom([]string{"type", "kind, type", "sizeclass", "length", "spacetype", "space, type",
			"type, spacetype", `type startsWith "java" ? "java" : "other", size`}).
			Draw(t, "by")
		d, r := x.diff(t, lib, spec)
		a, _ := x.diff(t, lib, "ages, type")
		b, _ := x.diff(t, lib, `(atleast ? "≥ " : "") + power(age * 1), type`)
		if !reflect.DeepEqual(a.Tree, b.Tree) { // the second keeps each birth apart
			t.Fatalf("by ages from %d to %d: %+v, and with each birth by itself %+v", x.from, x.to, a.Tree, b.Tree)
		}
		ref, seen := x.reference(r, spec), 0
		bySpace := strings.Contains(spec, "space")
		var walk func(path string, c *Change)
		walk = func(path string, c *Change) {
			want := ref[path]
			switch {
			case want != nil:
				seen++
			// a space that all may have left alive, with their identity lost on the way
			case !c.Exact && bySpace:
				want = &diffCounts{}
			default:
				t.Fatalf("%s is not in the reference", path)
			}
			if wrong := want.hold(c, bySpace); wrong != "" {
				t.Fatalf("%d to %d, %s: %s", x.from, x.to, path, wrong)
			}
			if c.Exact {
				exact++
			} else {
				bounded++
			}
			for _, x := range c.Children {
				walk(path+"/"+x.Key, x)
			}
		}
		if len(ref) > 0 {
			walk("", d.Tree)
			if seen != len(ref) {
				t.Fatalf("%d groups, reference %d", seen, len(ref))
			}
		}
	})
	if exact < 100 || bounded < 10 {
		t.Fatalf("only %d exact and %d bounded groups", exact, bounded)
	}
}

// TestDiffBySpaceWithoutIdentity: an unreported full collection takes identities, so that what left survivor
// space alive may have died there. Such a group stands with its bounds, but not where all of it is found in old space.
func TestDiffBySpaceWithoutIdentity(t *testing.T) {
	by, err := classify.NewLibrary().By("space, type")
	if err != nil {
		t.Fatal(err)
	}
	maybe := 0
	for seed := uint64(1); seed <= 100; seed++ {
		m := tracetest.New(tracetest.All(seed, seed%2+1, seed/2%2+2))
		a, b := m.Step(true), m.FullGC()
		if !a.Known || !b.Known || a.Dropped || b.Dropped {
			continue
		}
		d, err := Diff(heap.NewReplay(&analysistest.Source{B: append(a.Blocks, b.Blocks...)}), a.Pause.GC, b.Pause.GC,
			by, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, space := range d.Tree.Children {
			for _, c := range space.Children {
				if c.Objects == (Changes{}) {
					t.Errorf("seed %d: nothing was ever in %s/%s", seed, space.Key, c.Key)
				}
				if c.Objects.Died.Low == 0 && c.Objects.Died.High > 0 &&
					c.Objects.Permanent.High+c.Objects.Born.High == 0 {
					maybe++
				}
			}
		}
	}
	if maybe == 0 {
		t.Error("no group of which all may have died or moved")
	}
}

// TestAgesAfterLoss: a full collection between two states takes identities. Then a lower bound of an age does not say
// which objects of the first state are left, however coarse the ages are.
func TestAgesAfterLoss(t *testing.T) {
	folded := func(birth uint32, atLeast bool, n uint64) heap.Folded {
		return heap.Folded{Type: 1, Words: 2, Birth: birth, AtLeast: atLeast, Space: -1, Objects: n, Bytes: 16 * n}
	}
	for relisted, want := range map[uint64][2]uint64{6: {5, 19}, 2: {2, 16}} {
		r := &heap.View{Relisted: relisted}
		each, _ := match(r, []heap.Folded{folded(2, true, 17), folded(3, false, 2)},
			[]heap.Folded{folded(2, true, 3), folded(3, true, 2)}, 5, nil)
		eras, _ := match(r, []heap.Folded{folded(3, true, 17), folded(3, false, 2)},
			[]heap.Folded{folded(3, true, 5)}, 5, nil)
		count := func(ts []classify.Tuple, part uint8) (n uint64) {
			for _, t := range ts {
				if t.Part == part {
					n += t.Objects
				}
			}
			return n
		}
		for _, ts := range [][]classify.Tuple{each, eras} {
			if loose, died := count(ts, partLoose), count(ts, partDied); loose != want[0] || died != want[1] {
				t.Errorf("%d objects are left, %d are not: want %d", loose, died, want)
			}
			if relisted < 5 { // a bound belongs to the same object in both, and no new one appears
				break
			}
		}
	}
}
