package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/references"
)

// otherListings are how many reference listings of a recording cannot be read.
type otherListings struct{ torn, refused int }

// allBlocks gives the blocks of a recording one after the other.
type allBlocks []trace.Block

func (b *allBlocks) Next() (trace.Block, error) {
	if len(*b) == 0 {
		return trace.Block{}, io.EOF
	}
	x := (*b)[0]
	*b = (*b)[1:]
	return x, nil
}

// referenceListings reads the reference listings of a recording.
func referenceListings(t *testing.T, dir string) (all []*references.Listing, of otherListings) {
	t.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var blocks allBlocks
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			b.Payload = slices.Clone(b.Payload)
			blocks = append(blocks, b)
		}
	}
	source := slices.Clone(blocks)
	found, err := reflisting.Find(&source)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range found {
		switch source := slices.Clone(blocks); {
		case x.Refused != "":
			of.refused++
		case !x.Whole:
			of.torn++
		default:
			l, _, err := reflisting.Read(&source, x.Number)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
	}
	return all, of
}

// withProbe gives the option that loads the probe, for JVMs that the daemon d records.
func (d *daemon) withProbe(t *testing.T, options string) string {
	t.Helper()
	lib, err := probe.Library()
	if err != nil {
		t.Skip("not run: reference listings (the probe is not compiled: make probe)")
	}
	so := filepath.Join(t.TempDir(), "libheapcam.so")
	if err := os.WriteFile(so, lib, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(d.rings, fmt.Sprintf("heapcam-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return "-agentpath:" + so + "=dir=" + dir + options
}

type referencesReply struct {
	Dir string `json:"dir"`
	session.References
}

var (
	refOracle = regexp.MustCompile(`references oracle: jvmti=(\d+) walk=(\d+) differ=(\d+) odd=(\d+) unreached=\d+ ` +
		`torn=(\d+) objects=(\d+)`)
	// Statics of classes that are not linked, and a field that HotSpot adds to a class: JVMTI names neither.
	unnamed    = map[string]bool{"java/lang/Class": true, "java/lang/invoke/ResolvedMethodName": true}
	refDiffers = regexp.MustCompile(`references oracle: differs (\S+) jvmti=(\d+) walk=(\d+)`)
)

// TestReferences takes a reference listing of a program that holds objects in every way, on all pairs of JDK and
// collector and all layouts of objects. In the same stop JVMTI follows all references: by class they are the same
// (sums over both addresses of each), but for what JVMTI leaves out (unnamed).
func TestReferences(t *testing.T) {
	t.Parallel()
	for _, gc := range []string{"Serial", "Parallel", "G1"} {
		for _, major := range []int{17, 25} {
			t.Run(fmt.Sprintf("%s-%d", gc, major), func(t *testing.T) { holdReferences(t, major, gc) })
		}
	}
	t.Run("G1-25-compact", func(t *testing.T) { holdReferences(t, 25, "G1", "-XX:+UseCompactObjectHeaders") })
	t.Run("Parallel-25-wide", func(t *testing.T) { holdReferences(t, 25, "Parallel", "-XX:-UseCompressedOops") })
	t.Run("Serial-17-wide", func(t *testing.T) {
		holdReferences(t, 17, "Serial", "-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers")
	})
	t.Run("Serial-17-40g", func(t *testing.T) { holdReferences(t, 17, "Serial", "-Xmx40g") })
	t.Run("Serial-25-40g", func(t *testing.T) { holdReferences(t, 25, "Serial", "-Xmx40g") })
}

// TestReferencesFar: the young space of this heap begins 32 GiB behind its base, so a listing is refused.
func TestReferencesFar(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "Parallel", main: "References", args: []string{file},
		opts: []string{"-Xmx60g", d.withProbe(t, "")}}
	r := p.plain(t)
	await(t, "the program is ready", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	awaitSession(t, d)
	_, errs, code := heapcam(t, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
	if code != 1 || !strings.Contains(errs, "more than 32 GiB apart") {
		t.Errorf("status %d: %s", code, errs)
	}
	r.end(t, file)
	d.stop(t)
}

func holdReferences(t *testing.T, major int, gc string, opts ...string) {
	d := newDaemon(t)
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: major, gc: gc, main: "References", args: []string{file},
		opts: append(opts, d.withProbe(t, ",oracle=1"))}
	r := p.plain(t)
	await(t, "the program is ready", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	awaitSession(t, d)
	var got referencesReply
	heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
	r.end(t, file)
	d.stop(t)
	m := refOracle.FindStringSubmatch(r.stderr.String())
	if m == nil {
		t.Fatalf("no answer of the oracle:\n%s", r.stderr.String())
	}
	if m[4] != "0" || m[5] != "0" {
		t.Errorf("%s", m[0])
	}
	for _, x := range refDiffers.FindAllStringSubmatch(r.stderr.String(), -1) {
		if !unnamed[x[1]] {
			t.Errorf("%s", x[0])
		}
	}
	t.Log(m[0], refDiffers.FindAllString(r.stderr.String(), -1))
	all, of := referenceListings(t, got.Dir)
	if len(all) != 1 || of.torn != 0 {
		t.Fatalf("%d listings, %d torn", len(all), of.torn)
	}
	if n := len(all[0].Addr); uint64(n) != got.Objects || len(all[0].Roots) == 0 {
		t.Errorf("%d objects, the probe says %d; %d roots", n, got.Objects, len(all[0].Roots))
	}
	for _, s := range all[0].Samples {
		if all[0].Find(uint32(s.Word)+1) < 0 {
			t.Errorf("sample %d: no object is at %d", s.ID, s.Word)
		}
	}
	t.Logf("%d samples", len(all[0].Samples))
	checkHeld(t, all[0])
	sound(t, got.Dir)
}

func awaitSession(t *testing.T, d *daemon) {
	t.Helper()
	await(t, "a recording", func() bool {
		for _, s := range d.status(t).JVMs {
			if s.Phase == session.Recording && s.Files > 0 {
				return true
			}
		}
		return false
	})
}

// sound fails unless verify finds the recording sound.
func sound(t *testing.T, dir string) {
	t.Helper()
	if out, errs, code := heapcam(t, "verify", dir); code != 0 {
		t.Errorf("verify: status %d: %s%s", code, out, errs)
	}
}

// checkHeld finds what the program holds by the names of fields.
func checkHeld(t *testing.T, l *references.Listing) {
	t.Helper()
	// to follows fields by name from an object; "[]" is any element that is not null.
	name := func(i int) string { return l.Shape(i).Name }
	to := func(i int, fields ...string) int {
		for _, f := range fields {
			next := -1
			for k, s := range l.Of(i) {
				if x := l.Shape(i).Slot(k); s != 0 && x.Name == f {
					next = l.Find(s)
					break
				}
			}
			if next < 0 {
				t.Errorf("%s has no field %q with an object: %+v", name(i), f, l.Shape(i))
				return i
			}
			i = next
		}
		return i
	}
	mirrors := map[string]int{}
	strengths, frames := map[string]references.Strength{}, 0
	for i := range l.Addr {
		s := l.Shape(i)
		if s.Kind == references.Mirror && s.Of != "" {
			mirrors[s.Of] = i
		}
		if s.Kind == references.Reference && l.Of(i)[0] != 0 {
			if x := l.Find(l.Of(i)[0]); x >= 0 && strings.HasPrefix(name(x), "References$") {
				strengths[name(x)+" "+s.Name] = s.Slot(0).Strength
			}
		}
	}
	main, ok := mirrors["References"]
	if !ok {
		t.Fatal("no mirror of References")
	}
	for _, path := range [][]string{{"cache", "table", "[]", "value"}, {"array", "[]"}} {
		if x := to(main, path...); name(x) != "References$Derived" || name(to(x, "inBase")) != "References$Held" {
			t.Errorf("%v leads to %s", path, name(x))
		}
	}
	if x := to(main, "array", "[]", "inDerived"); name(x) != "References$Derived" {
		t.Errorf("inDerived leads to %s", name(x))
	}
	if x := to(mirrors["References$Constants"], "CONSTANT"); name(x) != "References$Held" {
		t.Errorf("a constant of an interface leads to %s", name(x))
	}
	want := map[string]references.Strength{
		"References$SoftlyHeld java/lang/ref/SoftReference":    references.Soft,
		"References$WeaklyHeld java/lang/ref/WeakReference":    references.Weak,
		"References$WeaklyHeld java/lang/ref/PhantomReference": references.Phantom,
	}
	for k, s := range want {
		if got, ok := strengths[k]; !ok || got != s {
			t.Errorf("%s: strength %v (%v), want %v", k, got, ok, s)
		}
	}
	kinds := map[string]int{}
	for _, r := range l.Roots {
		kinds[r.Kind.String()]++
		x := l.Find(r.Target)
		if x < 0 {
			t.Errorf("a root (%v) is no object", r.Kind)
		} else if r.Kind == references.StackLocal && r.Class == "References" && r.Method == "main" && r.Line > 30 &&
			r.Thread == "main" && name(x) == "References$WeaklyHeld" {
			frames++
		}
	}
	t.Log("roots by kind:", kinds, "missing:", l.Missing)
	if frames == 0 {
		t.Error("the local variable of main is no root")
	}
	loaders := 0
	for i := range l.Addr {
		if l.Shape(i).Kind != references.Loader {
			continue
		}
		for k, s := range l.Of(i) {
			if l.Shape(i).Slot(k).Name == "(class)" && l.Find(s) == main {
				loaders++
			}
		}
	}
	if loaders != 1 {
		t.Errorf("%d class loaders hold the class References", loaders)
	}
}

// TestReferencesCheckJNI: -Xcheck:jni has nothing to say about a reference listing, twice in a row.
func TestReferencesCheckJNI(t *testing.T) {
	t.Parallel()
	for _, major := range []int{17, 25} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			d := newDaemon(t)
			d.start(t)
			file := filepath.Join(t.TempDir(), "end")
			p := program{major: major, gc: "Parallel", main: "References", args: []string{file},
				opts: []string{"-Xcheck:jni", d.withProbe(t, "")}}
			r := p.plain(t)
			await(t, "the program is ready", func() bool { return strings.Contains(r.stdout.String(), "ready") })
			awaitSession(t, d)
			var got referencesReply
			for range 2 {
				heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
			}
			r.end(t, file)
			d.stop(t)
			if out := r.stdout.String() + r.stderr.String(); strings.Contains(out, "WARNING") {
				t.Errorf("-Xcheck:jni: %s", tail(out))
			}
			if all, of := referenceListings(t, got.Dir); len(all) != 2 || of.torn != 0 {
				t.Errorf("%d listings, %d torn", len(all), of.torn)
			}
			sound(t, got.Dir)
		})
	}
}

// TestReferencesRefused: what would stop the JVM for too long is refused with the figure, and the JVM keeps running.
func TestReferencesRefused(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "Serial", main: "References", args: []string{file},
		opts: []string{d.withProbe(t, "")}}
	r := p.plain(t)
	await(t, "the program is ready", func() bool { return strings.Contains(r.stdout.String(), "ready") })
	awaitSession(t, d)
	_, errs, code := heapcam(t, "references", "--max-reference-pause", "1ms", "--socket", d.sock, r.pidText())
	if code != 1 || !regexp.MustCompile(`the limit is 1 ms|aborted after 1 ms`).MatchString(errs) {
		t.Errorf("status %d: %s", code, errs)
	}
	var got referencesReply
	heapcamJSON(t, &got, "references", "--max-reference-pause", "20s", "--socket", d.sock, r.pidText())
	r.end(t, file)
	d.stop(t)
	if all, of := referenceListings(t, got.Dir); len(all) != 1 || of.refused != 1 || of.torn != 0 {
		t.Errorf("%d listings, %d refused, %d torn", len(all), of.refused, of.torn)
	}
}
