package analysis

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestTrendAgainstReference: the figures of each group are what the reference counts after each collection.
func TestTrendAgainstReference(t *testing.T) {
	lib := classify.NewLibrary()
	points := 0
	rapid.Check(t, func(t *rapid.T) {
		bs := analysistest.Recording(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"),
			rapid.Uint64Range(1, 3).Draw(t, "collector"),
			rapid.Uint64Range(2, 3).Draw(t, "depth"), rapid.IntRange(3, 8).Draw(t, "steps"))
		by := rapid.SampledFrom([]string{"type", "kind, type", "ages", "packages"}).Draw(t, "by")
		tr, err := Trend(
			heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)}),
			func() ([]classify.Classifier, []classify.Filter) {
				cs, err := lib.By(by)
				if err != nil {
					t.Fatal(err)
				}
				return cs, nil
			},
			0,
		)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]uint64{} // bytes by path and collection
		n := 0
		r := heap.NewReplay(&analysistest.Source{B: bs})
		if err := collection.Each(r, func(c *heap.Collection) bool {
			if !c.Known {
				return true
			}
			objs := refObjects(r, c)
			root := &refNode{}
			for i := range objs {
				root.add(&objs[i], strings.Split(by, ", "), nil, false)
			}
			var walk func(path string, x *refNode)
			walk = func(path string, x *refNode) {
				for k, y := range x.children {
					_, key, _ := strings.Cut(k, " ")
					p := path + "/" + key
					for len(want[p]) <= n {
						want[p] = append(want[p], 0)
					}
					want[p][n] += y.bytes
					walk(p, y)
				}
			}
			walk("", root)
			if fills := r.JVM.Collector == trace.CollectorG1 && r.JVM.Major < 20; tr.MayFill != fills {
				t.Fatalf("collector %d of %d: may fill: %v", r.JVM.Collector, r.JVM.Major, tr.MayFill)
			}
			if tr.Collections[n].GC != c.GC || tr.Collections[n].Bytes != root.bytes {
				t.Fatalf("point %d: %+v", n, tr.Collections[n])
			}
			n++
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if n != len(tr.Collections) || len(tr.Rows) != len(want) {
			t.Fatalf("%d collections, %d rows, reference %d, %d", len(tr.Collections), len(tr.Rows), n, len(want))
		}
		for _, row := range tr.Rows {
			w := want["/"+strings.Join(row.Path, "/")]
			for i, b := range row.Bytes {
				v := uint64(0)
				if i < len(w) {
					v = w[i]
				}
				if b != v {
					t.Fatalf("%v at %d: %d, reference %d", row.Path, i, b, v)
				}
				points++
			}
		}
	})
	if points < 1000 {
		t.Fatalf("only %d points", points)
	}
}

// TestTrendStates: a trend of states that were kept is that of a replay, whatever it groups by.
func TestTrendStates(t *testing.T) {
	lib := classify.NewLibrary()
	counted := 0
	rapid.Check(t, func(t *rapid.T) {
		bs := analysistest.Recording(rapid.Uint64Range(1, 1<<20).Draw(t, "seed"),
			rapid.Uint64Range(1, 3).Draw(t, "collector"),
			rapid.Uint64Range(2, 3).Draw(t, "depth"), rapid.IntRange(3, 8).Draw(t, "steps"))
		by := rapid.SampledFrom([]string{"type", "packages, type(short)", "site", "site(1)", "type, site(2)",
			"packages, site", "thread, type", "confidence, site", "kind, type", "type, ages"}).
			Draw(t, "by")
		where := rapid.SampledFrom([]string{"", "", `type contains "a"`, `thread contains "1"`}).Draw(t, "where")
		again := func() (cs []classify.Classifier, fs []classify.Filter) {
			cs, err := lib.By(by)
			if err == nil && where != "" {
				var f classify.Filter
				f, err = classify.NewFilter(where)
				fs = append(fs, f)
			}
			if err != nil {
				t.Fatal(err)
			}
			return cs, fs
		}
		var kept []heap.AnySnapshot
		lives := &heap.Lives{}
		r := heap.NewReplay(&analysistest.Source{B: slices.Clone(bs)})
		unknown := 0
		places := heap.NewPlaces(lives)
		first, _ := again()
		a, _ := classify.Needs(first, nil)
		if err := collection.Each(r, func(c *heap.Collection) bool {
			lives.Follow(r.Samples, c.GC)
			if !c.Known {
				unknown++
				return true
			}
			k := r.Count(c, places)
			if !k.Sites() || a&classify.AttrAll&^classify.AttrSite != 0 {
				kept = append(kept, r.Snapshot(c, nil))
			} else {
				kept = append(kept, k)
				counted++
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		names, samples := r.Names(), &heap.Sampling{}
		want, err := Trend(heap.NewReplay(&analysistest.Source{B: bs}), again, 0)
		if err != nil {
			t.Fatal(err)
		}
		want.Unknown -= unknown
		for range 2 { // the second time samples are known
			got, err := TrendStates(samples, nil, func(f func(*heap.View, *heap.Collection) bool) error {
				for _, k := range kept {
					if !f(k.View(names, lives), k.At()) {
						break
					}
				}
				return nil
			}, again, 0)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(want)
				t.Fatalf("by %s where %q:\n%s\nand not\n%s", by, where, a, b)
			}
		}
	})
	if counted == 0 {
		t.Error("no state of counts was looked at")
	}
}

// TestSlopes: what rises steadily comes before what jumped once, swings or stays, whatever their size, and its slope is
// right.
func TestSlopes(t *testing.T) {
	const n = 200
	begin := time.Unix(1_790_000_000, 0)
	rep := &TrendReport{}
	for i := range n {
		at := Moment{Time: begin.Add(time.Duration(i) * time.Second)}
		rep.Collections = append(rep.Collections, TrendPoint{Moment: at})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	curves := map[string]func(i int) uint64{
		"jump":  func(i int) uint64 { return map[bool]uint64{true: 90 << 20}[i > 10] + 1<<20 },
		"swing": func(i int) uint64 { return 50<<20 + rng.Uint64N(40<<20) },
		"slow":  func(i int) uint64 { return uint64(1000+100*i) + rng.Uint64N(50) },
		"fast":  func(i int) uint64 { return uint64(5000*i) + rng.Uint64N(2000) },
		"falls": func(i int) uint64 { return uint64(5<<20-2000*i) + rng.Uint64N(2000) },
		"stays": func(i int) uint64 { return 7 << 20 },
		// more at the end than at the start, but less and less after the first collections
		"sinks": func(i int) uint64 { return uint64(min(i, 3)*100_000-10*i) + rng.Uint64N(5) },
	}
	for name, f := range curves {
		row := TrendRow{Path: []string{name}}
		for i := range n {
			row.Bytes = append(row.Bytes, f(i))
		}
		row.First, row.Last = row.Bytes[0], row.Bytes[n-1]
		rep.Rows = append(rep.Rows, row)
	}
	slices.SortFunc(rep.Rows, func(x, y TrendRow) int { return cmp.Compare(y.moved(), x.moved()) })
	rep.slopes()
	var order []string
	for _, r := range rep.Rows {
		order = append(order, r.Path[0])
		want, ok := map[string]float64{"slow": 100, "fast": 5000, "falls": -2000}[r.Path[0]]
		if r.Steady() != ok || ok && (r.Slope.Low > want || r.Slope.High < want) {
			t.Errorf("%s: %+v", r.Path[0], r.Slope)
		}
	}
	if !slices.Equal(order[:4], []string{"fast", "falls", "slow", "jump"}) {
		t.Errorf("%v", order)
	}
}
