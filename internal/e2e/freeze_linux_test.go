package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestFreeze: a JVM that ends without an end marker, for whatever cause, leaves an incident that can be read up to its
// last collection. A JVM that runs out of heap and continues leaves one incident for each burst of failures. If only
// direct memory is exhausted (that OutOfMemoryError is thrown by the class library), there is none.
func TestFreeze(t *testing.T) {
	t.Parallel()
	const gone, exhausted = "without an end marker", "exhausted"
	majors := []int{17, 25}
	for _, c := range []struct {
		name string
		opts []string
		args []string
		why  string // of the incident; "": there is none
	}{
		{"exit", []string{"-XX:+ExitOnOutOfMemoryError"}, []string{"heap"}, gone},
		{"crash", []string{"-XX:+CrashOnOutOfMemoryError", "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=/dev/null"},
			[]string{"heap"}, gone},
		{"killed by itself", []string{"-XX:OnOutOfMemoryError=kill -9 %p"}, []string{"heap"}, gone},
		// thrown by the library: the JVM ends as with any exception
		{"direct memory", []string{"-XX:+ExitOnOutOfMemoryError", "-XX:MaxDirectMemorySize=8m"},
			[]string{"direct"}, ""},
		{"caught", []string{"-XX:OnOutOfMemoryError=true"}, []string{"heap", "caught"}, exhausted},
		{"uncaught", nil, []string{"heap"}, exhausted},
	} {
		for i, major := range majors {
			if !full && i != len(c.name)%2 { // half of them
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				p := program{major: major, gc: collectors[(i+len(c.name))%len(collectors)], heap: "48m",
					main: "Oom", opts: c.opts,
					args: c.args, limit: "4MiB"}
				r := p.start(t)
				r.wait(t)
				n := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}
				all, err := n.List()
				if err != nil {
					t.Fatal(err)
				}
				found, times := "", 0
				for _, i := range all {
					switch {
					case c.why != "" && strings.Contains(i.Reason, c.why) && i.Auto:
						found = i.ID
						times++
					case !strings.Contains(i.Reason, "storm"):
						t.Errorf("an incident: %+v", i)
					}
				}
				if c.why == "" {
					return
				}
				if times != 1 {
					t.Fatalf("%d incidents; %s", times, tail(r.stderr.String()))
				}
				file := filepath.Join(t.TempDir(), "incident.heapcam")
				if out, errs, code := heapcam(t, "pull", "--out", r.out, "--incident", found, "-o", file); code != 0 {
					t.Fatalf("pull: status %d\n%s%s", code, out, errs)
				}
				verify(t, file, 1)
				i, err := n.Find(found)
				if err != nil || c.why == gone && int(i.LastGC) < r.recorded(t).collections {
					t.Errorf("the incident ends at %d, %d collections were recorded", i.LastGC,
						r.recorded(t).collections)
				}
			})
		}
	}
}

// TestGCStorm: one full collection after the other, each of which is listed by the probe. What the listings take is
// bounded, so that the recording still reaches back before the storm; what was left out is reported.
func TestGCStorm(t *testing.T) {
	p := program{major: 17, gc: "Parallel", heap: "64m", main: "Tight", args: []string{"8000", "85"}, limit: "2MiB",
		timeout: 100 * time.Second}
	r := p.start(t)
	r.wait(t)
	rec := r.recorded(t)
	r0, err := ringstore.OpenRecording(rec.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r0.Close()
	skipped, listed, first := storm(t, r0)
	t.Logf("%d collections, %d listed, %d left out", rec.collections, listed, skipped)
	if rec.collections > 40 && skipped == 0 || first != 1 {
		t.Errorf("%d listings were left out, the recording begins with collection %d", skipped, first)
	}
	verify(t, rec.dir, 1)
}

// storm counts the listings that were left out and reported, those that are there, and gives the number of the first
// collection.
func storm(t *testing.T, rec *ringstore.Recording) (skipped, listed int, first uint64) {
	t.Helper()
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				if e, err := trace.DecodeEpoch(b); err == nil && first == 0 {
					first = e.Pause.GC
				}
			case trace.KindSync:
				listed++
			case trace.KindMeta:
				if m, err := trace.DecodeMeta(b); err == nil {
					for _, l := range m.Unlisted {
						if strings.Contains(l.Largest, "largest classes") {
							skipped++
						}
					}
				}
			}
		}
	}
	return skipped, listed, first
}

// TestThrashing: ten minutes of full collections over millions of objects, with a ring of 256 MiB. The recording still
// reaches back before the storm.
func TestThrashing(t *testing.T) {
	needReader(t)
	if !full {
		t.Skip("not run: ten minutes of full collections (make test-full)")
	}
	p := program{major: 17, gc: "Parallel", heap: "128m", main: "Thrash", args: []string{"60000", "600000", "88"},
		limit: "256MiB",
		opts:  []string{"-XX:-UseGCOverheadLimit"}, timeout: 20 * time.Minute}
	r := p.start(t)
	r.wait(t)
	rec := r.recorded(t)
	r0, err := ringstore.OpenRecording(rec.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r0.Close()
	skipped, listed, first := storm(t, r0)
	last, of := r0.Files[len(r0.Files)-1].Window(), r0.Files[0].Window()
	t.Logf("%d collections (%d lost) in %v, %d listed, %d left out, %d bytes; the recording begins with collection %d",
		rec.collections, rec.lost, time.Duration(last.T1-of.T0).Round(time.Second), listed, skipped,
		ringstore.Occupied(ringstore.OS, rec.dir), first)
	if first != 1 {
		t.Errorf("the recording begins with collection %d", first)
	}
	if skipped < 100 {
		t.Errorf("%d listings were left out: this was no storm", skipped)
	}
	verify(t, rec.dir, 1)
}

// TestFullDiskJVM fills the disk that a ring is on while a JVM is recorded, and empties it again: neither JVM nor
// recorder ends, what is lost is reported, recording comes back by itself, and what is there is sound.
func TestFullDiskJVM(t *testing.T) {
	needReader(t)
	if !full {
		t.Skip("not run: a disk that fills under a JVM, 20 s (make test-full)")
	}
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=40m"); err != nil {
		t.Skipf("not run: no tmpfs can be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: 25, gc: "G1", heap: "64m", main: "Until", args: []string{end, "20000", "0"}, limit: "16MiB",
		flags: []string{"--out", mount, "--max-incidents-size", "0"}}
	r := p.start(t)
	await(t, "the first collections", func() bool { return r.stops() >= 5 })
	ballast := filepath.Join(mount, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(b)
	}
	f.Close()
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	before := r.stops()
	await(t, "collections on a full disk", func() bool { return r.stops() >= before+10 })
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	time.Sleep(11 * time.Second) // a disk that said that it is full is left alone for ten
	before = r.stops()
	await(t, "collections with room again", func() bool { return r.stops() >= before+30 })
	r.end(t, end)
	rec := r.recorded(t)
	t.Logf("%d collections, %d lost", rec.collections, rec.lost)
	vs, err := ringstore.CheckPath(rec.dir)
	if err != nil || ringstore.Worst(vs) != ringstore.Sound {
		t.Errorf("%+v %v", vs, err)
	}
	last := uint64(0)
	r0, err := ringstore.OpenRecording(rec.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r0.Close()
	for _, f := range r0.Files {
		last = max(last, f.Window().LastGC)
	}
	if last != uint64(rec.collections) && last != uint64(rec.collections+rec.lost) {
		t.Errorf("the recording ends at collection %d, %d were recorded, %d lost", last, rec.collections, rec.lost)
	}
	verify(t, rec.dir, 1)
}
