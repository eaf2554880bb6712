package analysis

import (
	"cmp"
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

// TestDiffAgainstReference holds diffs against the truth of a model that knows each object's identity: what died,
// stayed and was born between two collections, in each group. Where the diff says that it is exact it must be equal;
// else the truth lies within its bounds.
func TestDiffAgainstReference(t *testing.T) {
	lib := classify.NewLibrary()
	exact, bounded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		collector, depth := rapid.Uint64Range(1, 3).Draw(t, "collector"), rapid.Uint64Range(2, 3).Draw(t, "depth")
		m := tracetest.New(tracetest.All(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"), collector, depth))
		var src analysistest.Source
		truth := map[uint64]map[uint64]tracetest.Object{} // by collection and identity
		var known []uint64
		for i := range rapid.IntRange(3, 10).Draw(t, "steps") {
			var e *tracetest.Epoch
			if rapid.IntRange(0, 5).Draw(t, "full") == 5 {
				e = m.FullGC()
			} else {
				e = m.Step(i%5 == 0)
			}
			src.B = append(src.B, e.Blocks...)
			if e.Known && !e.Dropped {
				at := map[uint64]tracetest.Object{}
				for _, o := range e.State {
					at[o.ID] = o
				}
				truth[e.Pause.GC] = at
				known = append(known, e.Pause.GC)
			}
		}
		if len(known) == 0 {
			return
		}
		i := rapid.IntRange(0, len(known)-1).Draw(t, "from")
		j := rapid.IntRange(i, len(known)-1).Draw(t, "to")
		spec := rapid.SampledFrom([]string{"type", "kind, type", "sizeclass", "length", "spacetype", "space, type",
			"type, spacetype", `type startsWith "java" ? "java" : "other", size`}).
			Draw(t, "by")
		by, err := lib.By(spec)
		if err != nil {
			t.Fatal(err)
		}
		from, to := known[i], known[j]
		r := heap.NewReplay(&analysistest.Source{B: slices.Clone(src.B)})
		d, err := Diff(r, from, to, by, nil)
		if err != nil {
			t.Fatal(err)
		}
		told, each := func(by string) *Change {
			c, err := lib.By(by)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Diff(heap.NewReplay(&analysistest.Source{B: slices.Clone(src.B)}), from, to, c, nil)
			if err != nil {
				t.Fatal(err)
			}
			return d.Tree
		}, `(atleast ? "≥ " : "") + power(age * 1), type`
		if a, b := told("ages, type"), told(each); !reflect.DeepEqual(a, b) { // the second keeps each birth apart
			t.Fatalf("by ages from %d to %d: %+v, and with each birth by itself %+v", from, to, a, b)
		}
		// The reference: identities in maps.
		type counts struct{ died, permanent, born [2]uint64 }
		ref := map[string]*counts{}
		keys := strings.Split(spec, ", ")
		count := func(o tracetest.Object, pick func(*counts) *[2]uint64) {
			x := refObject{Object: heap.Object{Type: o.Type, Length: o.Length, Words: o.Words},
				class: r.TypeName(o.Type), array: r.Types[uint64(o.Type)].Flags&1 != 0}
			path := ""
			see := func() {
				c := ref[path]
				if c == nil {
					c = &counts{}
					ref[path] = c
				}
				n := pick(c)
				n[0]++
				n[1] += o.Words * 8
			}
			see()
			for _, k := range keys {
				key := ""
				switch {
				case k == "size":
					key = refKeys["size"].keys(&x)[0]
				case k == "space": // its kind
					key = cmp.Or(spaceKinds[o.Space], classify.UnknownSpace)
				case k == "spacetype":
					key = map[uint64]string{trace.SpaceEden: "eden", trace.SpaceSurvivor: "survivor",
						trace.SpaceFree: classify.UnknownSpace}[o.Space]
					key = cmp.Or(key, "old")
				case refKeys[k].keys != nil:
					key = refKeys[k].keys(&x)[0]
				case strings.HasPrefix(x.class, "java"):
					key = "java"
				default:
					key = "other"
				}
				path += "/" + key
				see()
			}
		}
		for id, o := range truth[from] {
			if now, ok := truth[to][id]; ok {
				count(now, func(c *counts) *[2]uint64 { return &c.permanent })
			} else {
				count(o, func(c *counts) *[2]uint64 { return &c.died })
			}
		}
		for id, o := range truth[to] {
			if _, ok := truth[from][id]; !ok {
				count(o, func(c *counts) *[2]uint64 { return &c.born })
			}
		}
		seen := 0
		var walk func(path string, c *Change)
		walk = func(path string, c *Change) {
			want := ref[path]
			switch {
			case want != nil:
				seen++
			// a space that all may have left alive, with their identity lost on the way
			case !c.Exact && strings.Contains(spec, "space"):
				want = &counts{}
			default:
				t.Fatalf("%s is not in the reference", path)
			}
			for k, got := range []Changes{c.Objects, c.Bytes} {
				for _, x := range []struct {
					name string
					r    Range
					want uint64
				}{{"died", got.Died, want.died[k]}, {"permanent", got.Permanent, want.permanent[k]},
					{"born", got.Born, want.born[k]}} {
					if x.r.Low > x.want || x.r.High < x.want || x.r.Value < x.r.Low || x.r.Value > x.r.High {
						t.Fatalf("%d to %d, %s: %s %+v, truth %d (kind of figure %d)", from, to, path, x.name, x.r,
							x.want, k)
					}
				}
				if strings.Contains(spec, "space") {
					if w := want.died[k] + want.permanent[k]; got.Before.Low > w || got.Before.High < w {
						t.Fatalf("%d to %d, %s: before %+v, truth %+v", from, to, path, got.Before, *want)
					}
				} else if got.Before.Value != want.died[k]+want.permanent[k] ||
					got.After.Value != want.permanent[k]+want.born[k] {
					t.Fatalf("%d to %d, %s: before %+v after %+v, truth %+v", from, to, path, got.Before, got.After,
						*want)
				}
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

// TestDiffBySpaceWithoutIdentity: a full collection that is not told of takes identities, so that what left survivor
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
