//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// shop is a recording of a program whose static map holds 80 orders, 60 of them sampled in Shop.buy, and whose main
// method holds 20 others in a list. Three orders are garbage, and one more is held softly.
func shop(t *testing.T, evil string) (dir string, orders []int, l *references.Listing) {
	t.Helper()
	b := referencestest.New()
	b.Class("[Ljava/lang/Object;")
	b.Class("app/AppClassLoader", "parent")
	field := "table" + strings.ReplaceAll(evil, "\n", "")
	b.Class("app/Map", field)
	b.Class("java/lang/ref/SoftReference", "referent soft", "queue")
	loader, m := b.New("app/AppClassLoader"), b.Mirror("app/Shop", "cache", "soft")
	b.Root(loader, references.Root{Kind: references.LoaderRoot})
	b.Add(loader, m)
	cache, table, list := b.New("app/Map"), b.New("[Ljava/lang/Object;"), b.New("[Ljava/lang/Object;")
	b.Set(m, "cache", cache)
	b.Set(cache, field, table)
	b.Root(list, references.Root{Kind: references.StackLocal, Thread: "main" + evil, Class: "app/Main", Method: "run",
		Line: 3})
	for i := range 104 {
		o := b.New("app/Order")
		orders = append(orders, o)
		switch {
		case i < 80:
			b.Add(table, o)
			if i < 60 {
				b.Sample(o, "app/Shop", "buy")
			}
		case i < 100:
			b.Add(list, o)
		case i == 100:
			soft := b.New("java/lang/ref/SoftReference")
			b.Set(m, "soft", soft)
			b.Set(soft, "referent", o)
		}
	}
	return stored(t, b.Blocks(), true), orders, b.Listing()
}

// stored is a recording of these blocks, as the agent writes it: each part of a reference listing is in a frame of its
// own. apart: the flags of the frames say so, which earlier agents did not write.
func stored(t *testing.T, blocks []trace.Block, apart bool) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 64 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	info := ringstore.FrameInfo{Source: 1, FirstGC: 1, LastGC: 1, T0: 1, T1: 2e9, Flags: ringstore.FlagMarked}
	if apart {
		info.Flags |= ringstore.FlagApart
	}
	put := s.Rotate
	for len(blocks) > 0 {
		frame, at := trace.AppendBlock(nil, blocks[0]), info
		refs := blocks[0].Kind == trace.KindRefs
		if refs {
			at = ringstore.FrameInfo{Source: 1, T0: 2e9, T1: 2e9, Flags: info.Flags}
			if p, err := trace.DecodeRefs(blocks[0]); apart {
				at.Flags |= ringstore.FlagReferences
				if err == nil && p.Flags&(trace.RefFirst|trace.RefLast) != 0 {
					at.Flags |= ringstore.FlagListed
				}
			}
		}
		for blocks = blocks[1:]; !refs && len(blocks) > 0 && blocks[0].Kind != trace.KindRefs; blocks = blocks[1:] {
			if blocks[0].Kind == trace.KindSync {
				at.Flags |= ringstore.FlagDefs | ringstore.FlagListing
			}
			frame = trace.AppendBlock(frame, blocks[0])
		}
		if err := put(frame, at); err != nil {
			t.Fatal(err)
		}
		put = s.Append
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestReferencesStayPacked: verbs read no more of a reference listing than they need. What they print of a later
// collection is the same if the parts of the listing between its ends are only noise, and if an earlier agent wrote
// the recording. verify and holders find the noise.
func TestReferencesStayPacked(t *testing.T) {
	b := referencestest.New()
	b.Class("app/Order", "next")
	for i := range 50 {
		if b.New("app/Order"); i > 0 {
			b.Set(i-1, "next", i)
		}
	}
	b.Root(0, references.Root{Kind: references.JNIGlobal})
	later := trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 2, Kind: trace.PauseYoung, Flags: trace.PauseExact,
		Depth: trace.DepthSurvivors, Start: 3e9, Dur: 1e6, JVMGC: 2, Cause: "test"}})
	later.Seq = 1 << 20
	sound, noise := append(b.Blocks(), later), append(b.Blocks(), later)
	for i := range noise {
		if noise[i].Kind == trace.KindRefs && noise[i-1].Kind == trace.KindRefs && noise[i+1].Kind == trace.KindRefs {
			noise[i].Payload = bytes.Repeat([]byte{0xff}, len(noise[i].Payload))
		}
	}
	intact, damaged, old := stored(t, sound, true), stored(t, noise, true), stored(t, sound, false)
	for _, verb := range []string{"histogram", "group", "report", "leaks", "trend", "history", "cost"} {
		ask := func(dir string) string {
			out, code := heapcam(verb, dir)
			if code != 0 {
				t.Errorf("%s: status %d:\n%s", verb, code, out)
			}
			return strings.ReplaceAll(out, dir, "")
		}
		x := ask(intact)
		if y := ask(damaged); x != y && verb != "report" { // it says how much was garbage
			t.Errorf("%s reads the references: %s%s", verb, x, y)
		}
		if y := ask(old); x != y {
			t.Errorf("%s of an earlier agent's recording: %s%s", verb, x, y)
		}
	}
	for _, verb := range []string{"holders", "verify"} {
		for dir, fit := range map[string]bool{intact: true, old: true, damaged: false} {
			says := map[bool]string{true: "50 objects reached, with 49 references", false: "parts are missing"}[fit]
			if out, code := heapcam(verb, dir); verb == "holders" && (code == 0) != fit ||
				verb == "verify" && !strings.Contains(out, says) {
				t.Errorf("%s: fits %v, status %d:\n%s", verb, fit, code, out)
			}
		}
	}
}

// TestHolders: holders, paths and dominators of a recording whose holders are known.
func TestHolders(t *testing.T) {
	dir, orders, l := shop(t, "")
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"holders", dir, "--class", "Order"}, 0, []string{"104 objects",
			" 76.9 %  static app.Shop.cache → Map.table, then []",
			` 19.2 %  (stack local of thread "main") app.Main.run:3 → java.lang.Object[], then []`,
			"  2.9 %  nothing: garbage"}},
		{[]string{"holders", dir, "--site", "Shop.buy"}, 0, []string{"60 objects", "100 %  static app.Shop.cache"}},
		{[]string{"holders", dir, "--where", "size > 100"}, 0, []string{"100 %  static app.Shop.cache → Map.table"}},
		{[]string{"holders", dir, "--at", "last"}, 0, []string{"all live objects"}},
		{[]string{"holders", dir, "--class", "Order", "--dot"}, 0, []string{"digraph holders", "Map.table"}},
		{[]string{"paths", dir, "--class", "app.Order", "--strength", "soft"}, 0, []string{
			"1 reached by soft references", "static app.Shop.soft → SoftReference.referent (soft)"}},
		{[]string{"dominators", dir}, 0, []string{"app.AppClassLoader @ 0x100000080", "static app.Shop.cache"}},
		{[]string{"dominators", dir, "--by", "drop", "--top", "1"}, 0, []string{"DROP",
			"2.8 KiB    76.4 %      2.8 KiB  java.lang.Object[]"}},
		{[]string{"dominators", dir, "--since", "first"}, exitNotFound, []string{"no reference listing before"}},
		{[]string{"loaders", dir}, 0, []string{"1         1           2  app.AppClassLoader",
			"100 %  by (class loader)"}},
		{[]string{"loaders", dir, "--json"}, 0, []string{`"duplicates": []`}},
		{[]string{"dominators", dir, "--by", "package"}, 0, []string{"app"}},
		{[]string{"dominators", dir, "--by", "loader"}, 0, []string{"(boot) #1"}},
		{[]string{"dominators", dir, "--by", "site"}, 0, []string{"app.Shop.buy(Test.java:1)", "(not sampled)"}},
		{[]string{"holders", dir, "--class", "Nothing"}, exitNotFound, []string{"none in the references"}},
		{[]string{"holders", dir, "--at", "0"}, exitNotFound, []string{"no reference listing"}},
		{[]string{"holders", dir, "--class", "x", "--site", "y"}, exitUsage, []string{"only one of"}},
		{[]string{"paths", dir}, exitUsage, []string{"needs --class or --object"}},
		{[]string{"paths", dir, "--object", "0x3"}, exitNotFound, []string{"none"}},
		{[]string{"dominators", dir, "--by", "x"}, exitUsage, []string{"--by x"}},
	} {
		out, code := heapcam(c.args...)
		for _, w := range c.want {
			if code != c.code || !strings.Contains(out, w) {
				t.Errorf("%v: status %d, want %d with %q:\n%s", c.args[2:], code, c.code, w, out)
			}
		}
	}
	address := l.Base + uint64(l.Addr[orders[5]])*8
	out, code := heapcam("paths", dir, "--object", fmt.Sprintf("%#x", address))
	if code != 0 || !strings.Contains(out, "static app.Shop.cache → Map.table → []") {
		t.Errorf("status %d:\n%s", code, out)
	}
	out, _ = heapcam("holders", dir, "--class", "app.Order", "--json")
	var r retention.HoldersReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Matched != 104 || len(r.Holders) != 2 ||
		r.Holders[0].Objects != 80 || r.Holders[0].Path.Steps[1].Field != "cache" || r.GC != 1 {
		t.Errorf("%v: %+v", err, r)
	}
}

// TestHoldersHostile: names from a recording cannot begin a line or hide.
func TestHoldersHostile(t *testing.T) {
	dir, _, _ := shop(t, "\x1b[2K\n100")
	for _, args := range [][]string{{"holders", dir}, {"paths", dir, "--class", "app.Order"}, {"dominators", dir},
		{"holders", dir, "--dot"}, {"holders", dir, "--json"}} {
		out, code := heapcam(args...)
		if code != 0 || strings.Contains(out, "\x1b") || strings.Contains(out, "\n100") {
			t.Errorf("%v: status %d:\n%q", args, code, out)
		}
	}
}

// heapcam runs the program and gives what it printed and its status.
func heapcam(args ...string) (out string, code int) {
	c := exec.Command("heapcam", args...)
	b, _ := c.CombinedOutput()
	return string(b), c.ProcessState.ExitCode()
}

// TestHolderFlow demands that only our own blanks can break a holder's line.
func TestHolderFlow(t *testing.T) {
	for text, want := range map[ui.Text]ui.Flow{
		"static A.log → ArrayList.elementData, then []": "static A.log → ArrayList.elementData, then []",
		"static A.x → No leak found":                    `static A.x → No\x20leak\x20found`,
		"static A.t → TreeMap.root, then Entry.left/right ×16 → Entry.value": "static A.t → TreeMap.root, then " +
			"Entry.left/right ×16 → Entry.value",
		"(thread) → Thread.threadLocals, then []":        "(thread) → Thread.threadLocals, then []",
		`(thread "a b") → Thread.x → A.y`:                `(thread "a\x20b") → Thread.x → A.y`,
		`(thread "No leak found") Thread.x (soft) → A.y`: `(thread "No\x20leak\x20found") Thread.x (soft) → A.y`,
		"(a word on a stack, perhaps a reference)":       "(a word on a stack, perhaps a reference)",
		"(stack local)": "(stack local)",
		`(stack local of thread "a\") x") A.run:3`: `(stack local of thread "a\")\x20x") A.run:3`,
		"(JNI global) A.log → static A.x":          "(JNI global) A.log → static A.x",
		"static A.x → Node.next ×16 → … 9 more references … → A.y": "static A.x → Node.next ×16 → " +
			"… 9 more references … → A.y",
		"class A b, in other ways, each below 5 %": `class A\x20b, in other ways, each below 5 %`,
	} {
		if got := holderFlow(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestGarbageIsApart: where references were listed, histogram and report say what is garbage that was not collected.
// TestExhaustedHolder has the figures of a JVM.
func TestGarbageIsApart(t *testing.T) {
	dir, _, _ := shop(t, "")
	if out, code := heapcam("histogram", dir); code != 0 || !strings.Contains(out, "GARBAGE") {
		t.Errorf("status %d:\n%s", code, out)
	}
	out, _ := heapcam("report", dir)
	if !strings.Contains(out, "in old space after collection 1, ") {
		t.Errorf("the report:\n%s", out)
	}
}

// TestGarbageAgrees: histogram and group count the same garbage, in all and by class. What the JVM allocated in old
// space between the collection and the listing is not in the state, and what fills a hole is no object.
func TestGarbageAgrees(t *testing.T) {
	b := referencestest.New()
	for i := range 9 {
		if b.New("app/Order"); i < 3 {
			b.Root(i, references.Root{Kind: references.JNIGlobal})
		}
	}
	b.New("jdk/internal/vm/FillerElement")
	blocks := slices.DeleteFunc(b.Blocks(), func(x trace.Block) bool { return x.Kind == trace.KindRefs })
	for range 2 {
		b.New("app/Order")
	}
	dir := stored(t, append(blocks, slices.DeleteFunc(b.Blocks(), func(x trace.Block) bool {
		return x.Kind != trace.KindRefs
	})...), true)
	var h sites.Histogram
	var g analysis.Grouping
	for verb, into := range map[string]any{"histogram": &h, "group": &g} {
		args := []string{verb, dir, "--json"}
		if verb == "group" {
			args = append(args, "--by", "type")
		}
		out, code := heapcam(args...)
		if err := json.Unmarshal([]byte(out), into); err != nil || code != 0 {
			t.Fatalf("%s: status %d: %v:\n%s", verb, code, err, out)
		}
	}
	const dead, size = 6, 6 * 32
	if h.Objects != 10 || h.DeadObjects != dead || h.DeadBytes != size {
		t.Errorf("histogram: of %d objects %d are garbage, %d bytes", h.Objects, h.DeadObjects, h.DeadBytes)
	}
	if g.Objects != 10 || g.Tree.Dead == nil || g.Tree.Dead.Objects != dead || g.Tree.Dead.Bytes != size {
		t.Errorf("group: of %d objects %+v are garbage", g.Objects, g.Tree.Dead)
	}
	for _, n := range g.Tree.Children {
		if x := slices.IndexFunc(h.Classes, func(r sites.ClassRow) bool { return r.Class == n.Key }); x < 0 ||
			n.Dead == nil || h.Classes[x].DeadObjects != n.Dead.Objects {
			t.Errorf("%s: histogram %+v, group %+v", n.Key, h.Classes, n.Dead)
		}
	}
}

// TestDeadIsKept: what a histogram says of garbage is the same when it comes from the index.
func TestDeadIsKept(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	dir, _, _ := shop(t, "")
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		if err := os.Chtimes(f, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	first, _ := heapcam("histogram", dir)
	kept, _ := filepath.Glob(filepath.Join(cache, "heapcam", "*.dead1.json"))
	if again, code := heapcam("histogram", dir); code != 0 || len(kept) != 1 || again != first ||
		!strings.Contains(first, "GARBAGE") {
		t.Errorf("kept %v, status %d:\n%s%s", kept, code, first, again)
	}
}

// TestGroupByReferences: group and diff say what is garbage, and group by what a reference listing knows of objects.
func TestGroupByReferences(t *testing.T) {
	dir, _, _ := shop(t, "")
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"group", dir, "--by", "type", "--fold", "0"}, 0, []string{"GARBAGE", "96 B", "• app.Order"}},
		{[]string{"group", dir, "--by", "reachable, type", "--fold", "0"}, 0, []string{"• strong", "• soft",
			"• unreachable"}},
		{[]string{"group", dir, "--by", "holder, type", "--fold", "0"}, 0, []string{"• static app.Shop.cache\n"}},
		{[]string{"group", dir, "--by", "rootkind", "--fold", "0"}, 0, []string{"• class loader", "• stack local"}},
		{[]string{"group", dir, "--by", "retained", "--fold", "0"}, 0, []string{"• 32–63 B"}},
		{[]string{"group", dir, "--by", "pointedfrom(short)", "--where", `type == "app.Order"`,
			"--fold", "0"}, 0, []string{"• Object[]", "• SoftReference"}},
		{[]string{"group", dir, "--by", "pointsto, type", "--fold", "0"}, 0, []string{"• app.Order", "• app.Map"}},
		{[]string{"group", dir, "--by", "health", "--where", `"app.Order" in pointsto && retained > 100`}, 0,
			[]string{"• used"}},
		{[]string{"group", dir, "--by", "type", "--where", `reachable == "unreachable"`}, 0, []string{"3 objects"}},
		{[]string{"group", dir, "--list", "unreachable/app.Order", "--by", "reachable, type"}, 0, []string{
			"app.Order"}},
		{[]string{"group", dir, "--by", "type", "--json"}, 0, []string{`"dead": {`}},
		{[]string{"holders", dir, "--where", `reachable == "soft"`}, 0, []string{"static app.Shop.soft"}},
		{[]string{"diff", dir}, 0, []string{"GARBAGE  GROUP", "at the second collection: 96 B", "96 B  • app.Order"}},
		{[]string{"diff", dir, "--json"}, 0, []string{`"dead_after": {`}},
		{[]string{"diff", dir, "--by", "reachable"}, exitUsage, []string{"heapcam group"}},
		{[]string{"trend", dir, "--by", "retained"}, exitUsage, []string{"heapcam group"}},
		{[]string{"group", "../../web/testdata/window.heapcam", "--by", "reachable"}, exitNotFound, []string{
			"no reference listing"}},
	} {
		out, code := heapcam(c.args...)
		for _, w := range c.want {
			if code != c.code || !strings.Contains(out, w) {
				t.Errorf("%v: status %d, want %d with %q:\n%s", c.args[2:], code, c.code, w, out)
			}
		}
	}
}
