package classify_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/trace"
)

// shop is a small heap: two sites of carts, one of arrays, strings without a sample, and a type without a package.
func shop() (*classify.World, []classify.Tuple) {
	w := &classify.World{GC: 10, First: 2, Types: map[uint64]trace.Type{
		1: {ID: 1, Size: 24, Name: "shop/cart/Cart", Loader: 1},
		2: {ID: 2, Size: 16, Log2: 2, Flags: trace.TypeArray, Name: "[I"},
		3: {ID: 3, Size: 24, Name: "java/lang/String"},
	}, Loaders: map[uint64]trace.Loader{1: {ID: 1, Name: "app"}},
		Methods: map[uint64]trace.Method{
			1: {ID: 1, Class: "Lshop/cart/Cart;", Name: "add", File: "Cart.java",
				Lines: []trace.LineEntry{{BCI: 0, Line: 10}, {BCI: 5, Line: 12}}},
			2: {ID: 2, Class: "Lshop/Main;", Name: "main", File: "Main.java",
				Lines: []trace.LineEntry{{BCI: 0, Line: 3}}},
		},
		Frames: map[uint64]trace.Frame{1: {ID: 1, Method: 2}, 2: {ID: 2, Parent: 1, Method: 1},
			3: {ID: 3, Parent: 1, Method: 1, BCI: 5}},
		Threads: map[uint64]trace.Thread{1: {ID: 1, Name: "main"}}}
	sampled := func(t classify.Tuple, frame uint64, weight float64) classify.Tuple {
		t.Sampled, t.Frame, t.Thread, t.Space = true, frame, 1, -1
		for range t.Objects {
			t.WObjects.Add(1, weight)
			t.WBytes.Add(float64(t.Size), weight)
		}
		return t
	}
	return w, []classify.Tuple{
		sampled(classify.Tuple{Type: 1, Size: 24, Birth: 9, Objects: 4, Bytes: 96}, 2, 1),
		sampled(classify.Tuple{Type: 1, Size: 24, Birth: 5, Objects: 2, Bytes: 48}, 3, 1),
		sampled(classify.Tuple{Type: 2, Size: 416, Length: 100, Birth: 5, Objects: 1, Bytes: 416}, 1, 1),
		{Type: 2, Size: 4016, Length: 1000, Birth: 5, Objects: 1, Bytes: 4016, Space: -1},
		{Type: 3, Size: 24, Birth: 2, AtLeast: true, Objects: 10, Bytes: 240, Space: -1},
	}
}

func group(t *testing.T, by string, where ...string) *grouping.Node {
	t.Helper()
	w, ts := shop()
	cs, err := classify.NewLibrary().By(by)
	if err != nil {
		t.Fatal(err)
	}
	var fs []classify.Filter
	for _, x := range where {
		f, err := classify.NewFilter(x)
		if err != nil {
			t.Fatal(err)
		}
		fs = append(fs, f)
	}
	n, err := grouping.Build(w, ts, cs, fs)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// show writes a tree as text.
func show(n *grouping.Node) string {
	var b strings.Builder
	n.Walk(func(path []string, n *grouping.Node) bool {
		if len(path) > 0 {
			fmt.Fprintf(&b, "%s%s %d %d\n", strings.Repeat(" ", len(path)-1), n.Key, n.Objects, n.Bytes)
		}
		return true
	})
	return b.String()
}

// TestCases are small groupings with their whole tree: each cardinality, own objects of inner nodes, (others), sites,
// filters.
func TestCases(t *testing.T) {
	for _, c := range []struct{ by, where, want string }{
		{"type", "", "int[] 2 4432\njava.lang.String 10 240\nshop.cart.Cart 6 144\n"},
		{"type(short), site(2)", `package startsWith "shop"`, "Cart 6 144\n shop.cart.Cart.add(Cart.java:10) 4 96\n" +
			"  shop.Main.main(Main.java:3) 4 96\n shop.cart.Cart.add(Cart.java:12) 2 48\n" +
			"  shop.Main.main(Main.java:3) 2 48\n"},
		{"site(1)", "", "(site unknown) 1 4016\nshop.Main.main(Main.java:3) 1 416\n(before the recording) 10 240\n" +
			"shop.cart.Cart.add(Cart.java:10) 4 96\nshop.cart.Cart.add(Cart.java:12) 2 48\n"},
		{"packages", "", "(no package) 2 4432\njava 10 240\n lang 10 240\nshop 6 144\n cart 6 144\n"},
		{"kind, age", "", "big array 1 4016\n 5 1 4016\nsmall array 1 416\n 5 1 416\ninstance 16 384\n ≥ 8 10 240\n" +
			" 1 4 96\n 5 2 48\n"},
		// One-to-many: an object of two groups counts in each, and once in their parent.
		{`loader, array ? ["array", "big"] : []`, "", "bootstrap 12 4672\n array 2 4432\n big 2 4432\n" +
			" (others) 10 240\napp #1 6 144\n (others) 6 144\n"},
		// One-to-hierarchy: an object whose path ends at an inner node is that node's own, and the next level continues
		// there.
		{`array ? (length > 255 ? path("array", "big") : path("array")) : path("plain"), type`, "",
			"array 2 4432\n big 1 4016\n  int[] 1 4016\n int[] 1 416\nplain 16 384\n java.lang.String 10 240\n" +
				" shop.cart.Cart 6 144\n"},
		{"thread", "site.known", "main 7 560\n"},
		{"confidence", "", "(site unknown) 1 4016\nexact 7 560\n(before the recording) 10 240\n"},
	} {
		var where []string
		if c.where != "" {
			where = []string{c.where}
		}
		if got := show(group(t, c.by, where...)); got != c.want {
			t.Errorf("by %s where %s:\n%swant\n%s", c.by, c.where, got, c.want)
		}
	}
}

// TestWeights: samples that stand for many objects, bounded by what the type has; the rest is unknown.
func TestWeights(t *testing.T) {
	w, ts := shop()
	ts = []classify.Tuple{ts[0], {Type: 1, Birth: 9, Objects: 996, Bytes: 996 * 24, Space: -1}}
	ts[0].WObjects, ts[0].WBytes = stats.Total{}, stats.Total{}
	for range 4 {
		ts[0].WObjects.Add(1, 200)
		ts[0].WBytes.Add(24, 200)
	}
	cs, _ := classify.NewLibrary().By("site(1)")
	n, err := grouping.Build(w, ts, cs, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, u := n.FindPath("shop.cart.Cart.add(Cart.java:10)", "\x00"), n.FindPath(classify.SiteUnknown, "\x00")
	if s.Objects != 800 || s.Samples != 4 || !s.Estimated || u.Objects != 200 || n.Objects != 1000 || n.Estimated {
		t.Fatalf("%+v\n%+v\n%+v", n, s, u)
	}
	if *s.ObjLow > 400 || *s.ObjHigh != 1000 || *s.ObjLow < 4 {
		t.Fatalf("4 samples: %d to %d", *s.ObjLow, *s.ObjHigh)
	}
	// Twice as much as the type has: scaled down to what is there.
	for range 4 {
		ts[0].WObjects.Add(1, 400)
	}
	if n, _ = grouping.Build(w, ts, cs, nil); n.FindPath("shop.cart.Cart.add(Cart.java:10)", "\x00").Objects != 1000 {
		t.Fatal(show(n))
	}
}

func TestFoldAndSearch(t *testing.T) {
	n := group(t, "type, site(2)")
	f := n.Fold(0.1)
	if got := show(f); !strings.HasSuffix(got, "(2 smaller) 16 384\n") {
		t.Fatal(got)
	}
	s := n.Search(func(k string) bool { return strings.Contains(k, "Cart.java:12") })
	if got := show(s); got != "shop.cart.Cart 6 144\n shop.cart.Cart.add(Cart.java:12) 2 48\n"+
		"  shop.Main.main(Main.java:3) 2 48\n" {
		t.Fatal(got)
	}
	if n.Search(func(string) bool { return false }) != nil ||
		n.FindPath("shop.cart.Cart/shop.cart.Cart.add(Cart.java:12)", "/").Objects != 2 {
		t.Fatal("found what is not there, or not what is")
	}
}

// TestSpecErrors: each error points at its column.
func TestSpecErrors(t *testing.T) {
	for spec, col := range map[string]int{
		"type, , site":             6,
		"tpye":                     1,
		"type, tpye":               7,
		"type, site(0)":            7,
		`type, age > `:             11,
		`type, agee > 3`:           7,
		"type, (age":               11,
		"type)":                    5,
		"subsystem":                1,
		`"é", type, nosuch(1) + 1`: 12,
		`age + "x"`:                5,
		"address(3k)":              1,
	} {
		_, err := classify.NewLibrary().By(spec)
		var se *classify.SpecError
		if !errors.As(err, &se) || se.Col != col {
			t.Errorf("%s: %v, want column %d", spec, err, col)
		}
	}
	if _, err := classify.NewFilter("age + 1"); err == nil {
		t.Error("a filter that is no condition")
	}
}

// TestBudget: what takes too much ends with an error.
func TestBudget(t *testing.T) {
	w, ts := shop()
	for _, spec := range []string{
		`map(1..100000000, string(#))`, `len(map(1..3000, map(1..3000, #)))`, `1..1000`, `{"a": 1}`, `[site]`,
		`let a = "aaaaaaaaaa"; let b = a+a+a+a+a+a+a+a+a+a; let c = b+b+b+b+b+b+b+b+b+b; ` +
			`let d = c+c+c+c+c+c+c+c+c+c; let e = d+d+d+d+d+d+d+d+d+d; e`,
		`let a = 1..1000; count(a, count(a, count(a, true) > 0) > 0)`,
		`reduce(1..90000, #acc + "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "")`,
	} {
		cs, err := classify.NewLibrary().By(spec)
		if err == nil {
			_, err = grouping.Build(w, ts, cs, nil)
		}
		if err == nil {
			t.Errorf("%s: no error", spec)
		}
	}
}

func TestUserDefined(t *testing.T) {
	l := classify.NewLibrary()
	if err := l.Read(strings.NewReader(`
classifiers:
  - name: generation
    description: Young or old by age.
    example: generation, type
    cardinality: one
    expression: 'age > 4 ? "old" : "young"'
  - name: tags
    cardinality: many
    expression: 'array ? ["a", "b"] : []'
`), "x.yaml"); err != nil {
		t.Fatal(err)
	}
	cs, err := l.By("generation, tags")
	if err != nil {
		t.Fatal(err)
	}
	w, ts := shop()
	n, err := grouping.Build(w, ts, cs, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := show(n); got != "old 14 4720\n a 2 4432\n b 2 4432\n (others) 12 288\nyoung 4 96\n (others) 4 96\n" {
		t.Fatal(got)
	}
	if !slices.ContainsFunc(l.Docs(), func(d classify.Doc) bool { return d.Name == "generation" && d.User }) {
		t.Fatal("not documented")
	}
	for bad, line := range map[string]int{
		"classifiers:\n  - name: type\n    expression: age": 2, "classifiers:\n  - name: x\n    expression: age +": 2,
		"classifiers:\n  - name: x y\n    expression: age":                                                       2,
		"classifiers:\n  - name: x\n    expression: age\n  - name: y\n    cardinality: two\n    expression: age": 4,
		"classifiers:\n  - name: x\n    expr: age":                                                               2,
		"other: 1": 0, "classifiers: 3": 0,
	} {
		var de *classify.DefinitionError
		err := classify.NewLibrary().Read(strings.NewReader(bad), "x.yaml")
		if !errors.As(err, &de) || de.Line != line {
			t.Errorf("%q: %v, want line %d", bad, err, line)
		}
	}
}

func TestFeatures(t *testing.T) {
	fs, err := classify.ReadFeatures(strings.NewReader("# comment\nall: shop.*\ncarts: shop.cart.Cart\n"+
		"adding: shop.cart.Cart.add # a method\nline: shop.cart.Cart.java:11-12\nmain: shop.Main.java:3\n"), "f")
	if err != nil {
		t.Fatal(err)
	}
	w, _ := shop()
	for frame, want := range map[uint64]string{1: "all main", 2: "all carts adding main",
		3: "all carts adding line main", 9: ""} {
		if got := strings.Join(fs.Of(w, frame), " "); got != want {
			t.Errorf("frame %d: %q, want %q", frame, got, want)
		}
	}
	for bad, at := range map[string]string{"x": "f:1:1", "\na: b c": "f:2:4", "a: *x": "f:1:4",
		"a: B.java:9-2": "f:1:11", ": x": "f:1:1"} {
		_, err := classify.ReadFeatures(strings.NewReader(bad), "f")
		if err == nil || !strings.HasPrefix(err.Error(), at) {
			t.Errorf("%q: %v, want %s", bad, err, at)
		}
	}
}

// TestExamples: every documented example of a built-in classifier is understood, but for files.
func TestExamples(t *testing.T) {
	for _, d := range classify.NewLibrary().Docs() {
		if d.Text == "" || d.Example == "" || d.Keys == "" {
			t.Errorf("%s is not documented", d.Name)
		}
		if d.Name == "feature" {
			continue
		}
		group(t, d.Example)
	}
}

func FuzzSpec(f *testing.F) {
	for _, s := range []string{"type, site(3)", `age > 10 ? "old" : "young"`, "site.top(3)", `path("a", 1)`,
		"address(64k)", `map(1..9, #)`, "birthtime(10s)", "{", `"\`, "site.frames()[0]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		if strings.Contains(spec, "feature") {
			return
		}
		w, ts := shop()
		cs, err := classify.NewLibrary().By(spec)
		if err == nil {
			n, err := grouping.Build(w, ts, cs, nil)
			if err == nil && n.Objects != 18 {
				t.Fatalf("%d objects", n.Objects)
			}
		}
		if err != nil && err.Error() == "" {
			t.Fatal("no word")
		}
		if fl, err := classify.NewFilter(spec); err == nil {
			grouping.Build(w, ts, nil, []classify.Filter{fl})
		}
	})
}

func FuzzFeatures(f *testing.F) {
	f.Add("all: shop.*\nline: shop.cart.Cart.java:11-12\n")
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := classify.ReadFeatures(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		w, _ := shop()
		for frame := range uint64(4) {
			fs.Of(w, frame)
		}
	})
}

func FuzzDefinitions(f *testing.F) {
	f.Add("classifiers:\n  - name: x\n    expression: age\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := classify.NewLibrary()
		if l.Read(strings.NewReader(text), "f") != nil {
			return
		}
		w, ts := shop()
		for _, d := range l.Docs() {
			if d.User {
				if cs, err := l.By(d.Name); err == nil {
					grouping.Build(w, ts, cs, nil)
				}
			}
		}
	})
}

// TestAges holds which ages count as distinguished: of an expression only those that it compares with numbers or
// gives to power.
func TestAges(t *testing.T) {
	l := classify.NewLibrary()
	for _, c := range []struct {
		by, filter string
		want       []uint64 // of the first few
	}{
		{"type, site", "", []uint64{}},
		{"type, ages", "", []uint64{1, 2, 4, 8}},
		{"type, age", "", nil},
		{"ages, birth", "", nil},
		{"type", "age >= 8", []uint64{8, 9}},
		{"type", "5 == age or atleast", []uint64{5, 6}},
		{"type", "atleast", []uint64{}},
		{"type", "age > 2 and birth < 7", nil},
		{"type", "age % 2 == 0", nil},
		{"type", "age < length", nil},
		{`(atleast ? "≥ " : "") + power(age)`, "age < 6", []uint64{1, 2, 4, 6, 7, 8}},
		{"power(age + 1)", "", nil},
	} {
		by, err := l.By(c.by)
		if err != nil {
			t.Fatal(err)
		}
		var filters []classify.Filter
		if c.filter != "" {
			f, err := classify.NewFilter(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			filters = append(filters, f)
		}
		got := classify.Ages(by, filters)
		if (got == nil) != (c.want == nil) || len(got) < len(c.want) || len(got) > 0 &&
			!slices.Equal(got[:len(c.want)], c.want) {
			t.Errorf("%s, %s: %v", c.by, c.filter, got)
		}
	}
}
