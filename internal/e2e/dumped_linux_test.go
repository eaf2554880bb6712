package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/trace/references"
)

// TestDumped takes a reference listing and then a heap dump by jcmd of a JVM whose threads all wait in between. Each
// object of the listing is in the dump. The 50 objects that retain most retain the same by VisualVM's dominators, some
// of them once its rules are applied to the listing (asVisualVM). Full tests only.
func TestDumped(t *testing.T) {
	if !full {
		t.Skip("not run: retained sizes beside those of a dump by jcmd (HEAPCAM_FULL=1; a minute)")
	}
	if _, err := os.Stat(heapLibrary); err != nil {
		t.Skip("not run: VisualVM's heap library on a dump by jcmd (apt-get install visualvm)")
	}
	for i, gc := range []string{"Serial", "G1"} {
		t.Run(gc, func(t *testing.T) {
			dir, dominators := dumped(t, []int{17, 25}[i], gc)
			compareDumped(t, dir, dominators)
		})
	}
}

// dumped gives a recording with a reference listing, and the file of dominators of a heap dump of the same moment.
func dumped(t *testing.T, major int, gc string) (dir, dominators string) {
	t.Helper()
	dir, dump := dumpedByJcmd(t, major, gc)
	dominators = filepath.Join(filepath.Dir(dump), "dominators")
	java := filepath.Join(jdk(t, major), "bin", "java")
	out, err := exec.Command(java, "-Xmx1g", "-cp", heapLibrary, "../../bench/compare/Dominators.java", dump,
		dominators).CombinedOutput()
	if err != nil {
		t.Fatalf("java: %v\n%s", err, out)
	}
	return dir, dominators
}

// dumpedByJcmd gives a recording with a reference listing, and a heap dump: all threads waited in between.
func dumpedByJcmd(t *testing.T, major int, gc string) (dir, dump string) {
	t.Helper()
	d := newDaemon(t)
	d.start(t)
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := program{major: major, gc: gc, heap: "256m", main: "Waiting", opts: []string{d.withProbe(t, "")}, stdin: in}
	r := p.plain(t)
	in.Close()
	await(t, "the program waits", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	awaitSession(t, d)
	var got referencesReply
	heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
	dump = filepath.Join(t.TempDir(), "heap.hprof")
	out, err := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"), r.pidText(), "GC.heap_dump", "-all",
		dump).CombinedOutput() // without -all it would collect before
	if err != nil {
		t.Fatalf("jcmd: %v\n%s", err, out)
	}
	fmt.Fprintln(w)
	r.wait(t)
	d.stop(t)
	return got.Dir, dump
}

// compareDumped compares retained sizes.
func compareDumped(t *testing.T, dir, dominators string) {
	t.Helper()
	ours := listed(t, dir)
	g, err := graph.Build(ours, nil)
	if err != nil {
		t.Fatal(err)
	}
	bytes := map[uint64]uint64{}
	address := func(i int) uint64 { return ours.Base + uint64(ours.Addr[i])*8 }
	for i := range ours.Addr {
		bytes[address(i)] = g.Bytes(i)
	}
	theirs, missing, only := retainedBy(t, dominators, bytes)
	t.Logf("%d objects; %d are missing in the dump, %d are only there", len(bytes), len(missing), only)
	v := listed(t, dir)
	for i := range v.Addr {
		// Class objects of the archive whose class was never loaded: jcmd writes none.
		if s := ours.Shape(i); missing[address(i)] && (s.Kind != references.Mirror || s.Of != "") {
			t.Fatalf("%#x %s %s is not in the dump: it is of another moment", address(i), s.Name, s.Of)
		}
	}
	if only > len(bytes)/1000 {
		t.Error("the dump is of another moment")
	}
	asVisualVM(v, g, func(i int) bool { return missing[address(i)] })
	their, err := graph.Build(v, nil)
	if err != nil {
		t.Fatal(err)
	}
	same, ruled := 0, 0
	for _, i := range g.Biggest(50) {
		a, b, c := theirs[address(i)], g.Retained(i), their.Retained(i)
		switch name := ours.Shape(i).Name + " " + ours.Shape(i).Of; {
		case a == b:
			same++
		case a == c:
			ruled++
			t.Logf("%#x %s: heapcam %d, VisualVM and its rules %d", address(i), name, b, a)
		default:
			t.Errorf("%#x %s: heapcam %d, VisualVM %d, its rules %d", address(i), name, b, a, c)
		}
	}
	t.Logf("of the 50 that retain most, %d retain the same, %d by the rules of VisualVM", same, ruled)
}

// listed gives the only reference listing of a recording.
func listed(t *testing.T, dir string) *references.Listing {
	t.Helper()
	all, _ := referenceListings(t, dir)
	if len(all) != 1 {
		t.Fatalf("%d reference listings", len(all))
	}
	return all[0]
}

// retainedBy reads what Dominators.java wrote, and adds up the bytes of the objects below each.
func retainedBy(t *testing.T, file string, bytes map[uint64]uint64) (retained map[uint64]uint64,
	missing map[uint64]bool, only int,
) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dominator := map[uint64]uint64{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var a, d, size int64
		if _, err := fmt.Sscan(lines.Text(), &a, &d, &size); err != nil {
			t.Fatal(err)
		}
		dominator[uint64(a)] = uint64(d)
		if bytes[uint64(a)] == 0 {
			only++
		}
	}
	below := map[uint64]int{} // objects that an object dominates directly
	for _, d := range dominator {
		below[d]++
	}
	missing = map[uint64]bool{}
	for a := range bytes {
		if _, ok := dominator[a]; !ok {
			missing[a] = true
		}
	}
	var leaves []uint64
	for a := range dominator {
		if below[a] == 0 {
			leaves = append(leaves, a)
		}
	}
	retained = map[uint64]uint64{}
	for len(leaves) > 0 {
		a := leaves[len(leaves)-1]
		leaves = leaves[:len(leaves)-1]
		retained[a] += bytes[a]
		d := dominator[a]
		if retained[d] += retained[a]; d != 0 {
			if below[d]--; below[d] == 0 {
				leaves = append(leaves, d)
			}
		}
	}
	return retained, missing, only
}

// asVisualVM has a listing say what VisualVM's library takes a heap for. What garbage refers to counts as held by a
// root, and so does what a java.lang.ref.Reference refers to. An object does not keep its class alive. A dump has no
// fields of class objects but static ones and the loader: what they refer to has another holder or none. In a dump no
// class loader holds array classes and hidden ones. Objects that are missing there hold nothing, and nothing holds
// them. g is the graph of the same listing.
func asVisualVM(l *references.Listing, g *graph.Graph, missing func(object int) bool) {
	held := func(slot uint32) bool { // whether the loader of the class holds it in a dump
		i := l.Find(slot)
		return i < 0 || !missing(i) && (l.Shape(i).Kind != references.Mirror || !unheld(l.Shape(i).Of))
	}
	l.Roots = slices.DeleteFunc(l.Roots, func(r references.Root) bool {
		return r.Kind == references.LoaderRoot && !held(r.Target)
	})
	for i := range g.Objects() {
		s := g.L.Shape(i)
		for k, slot := range g.L.Of(i) {
			f := s.Slot(k)
			to, ok := g.Target(slot)
			if !ok || f == references.ClassField {
				continue
			}
			mirror := s.Kind == references.Mirror && k < len(s.Fields) && f.Class != s.Of && f.Name != "classLoader"
			if missing(to) || (mirror || s.Kind == references.Loader && k >= len(s.Fields)) && !held(g.L.Addr[to]+1) {
				l.Of(i)[k] = 0
				continue
			}
			loose := mirror || !g.Live(i) || f.Strength != references.Strong || missing(i)
			if loose {
				l.Roots = append(l.Roots, references.Root{Target: g.L.Addr[to] + 1})
			}
		}
	}
	slices.SortFunc(l.Roots, func(a, b references.Root) int { return int(int64(a.Target) - int64(b.Target)) })
	for i := range l.Shapes {
		s := &l.Shapes[i]
		if !strings.Contains(s.Name+s.Of, "+0x") { // of a hidden class: an object keeps it alive there, too
			s.Class = 0
		}
		s.Fields = slices.Clone(s.Fields)
		for k := range s.Fields {
			s.Fields[k].Strength = references.Strong
		}
	}
}

// unheld says whether a class is an array class or a hidden one.
func unheld(class string) bool {
	return strings.HasPrefix(class, "[") || strings.Contains(class, "+0x")
}
