package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// listing is one sync point as it stands in a file.
type listing struct {
	reason uint64
	size   int // of its block, bytes
}

// listings gives the sync points of a folder that somebody may be writing to.
func listings(dir string) (all []listing) {
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		return nil
	}
	defer rec.Close()
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil || b.Kind != trace.KindSync {
				continue
			}
			if s, err := trace.DecodeSync(b); err == nil {
				all = append(all, listing{s.Reason, b.Size()})
			}
		}
	}
	return all
}

// faults counts the collections of a recording whose moves and deaths a check or the guard dropped.
func faults(dir string) (n int) {
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		return 0
	}
	defer rec.Close()
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil || b.Kind != trace.KindEpoch {
				continue
			}
			if e, err := trace.DecodeEpoch(b); err == nil && e.Pause.Flags&trace.PauseFault != 0 {
				n++
			}
		}
	}
	return n
}

// listingSizes says how large the sync points of a recording are, smallest and largest, KiB.
func listingSizes(dir string) string {
	low, high := 1<<40, 0
	for _, l := range listings(dir) {
		low, high = min(low, l.size), max(high, l.size)
	}
	if high == 0 {
		return "none"
	}
	return fmt.Sprintf("%d to %d", low>>10, high>>10)
}

// TestCompressionNone records without compression into a ring that rotates: what was replayed is what was listed, and
// the frames are plain.
func TestCompressionNone(t *testing.T) {
	t.Parallel()
	somePair(t, "none", []int{17}, []string{"Serial", "G1"}, func(t *testing.T, major int, gc string) {
		t.Parallel()
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{end, "20000", "12"},
			limit: "16MiB",
			flags: []string{"--compression", "none", "--emergency", "off"}}
		r := p.start(t)
		var dirs []string
		await(t, "rotation", func() bool {
			dirs, _ = filepath.Glob(filepath.Join(r.out, "*"))
			return len(dirs) == 1 && rotations(dirs[0]) >= 3
		})
		r.end(t, end)
		rec := checkCount(t, r)
		verify(t, rec.dir, 1)
	})
}

// rotations is how often the ring in a folder has rotated by now.
func rotations(dir string) uint64 {
	rec, err := ringstore.OpenRecording(dir)
	if err != nil || len(rec.Files) == 0 {
		return 0
	}
	defer rec.Close()
	return rec.Files[len(rec.Files)-1].Index - 1
}

// TestEmergency records a program that never collects for long: the samples alone fill the ring until the last resort
// makes a listing of its own, by a walk or by a collection. One is made a phase between natural collections and no
// more; it agrees with what was replayed before it and what is replayed from it agrees with the listings behind it.
func TestEmergency(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"walk", "gc"} {
		t.Run(method, func(t *testing.T) {
			majors, gcs := []int{17}, map[string][]string{"walk": {"Serial", "G1"}, "gc": {"Parallel"}}[method]
			if full {
				majors, gcs = []int{17, 25}, collectors
			}
			if tiers.Short() {
				gcs = gcs[:1]
				t.Log("not run: an emergency walk of G1 (HEAPCAM_GATE=1, as .ci/run sets it)")
			}
			eachPair(t, majors, gcs, func(t *testing.T, major int, gc string) {
				p := program{major: major, gc: gc, heap: "1g", opts: []string{"-Xmn900m"}, main: "Quiet",
					args:  []string{"10"},
					limit: "1MiB",
					flags: []string{"--emergency", method, "--sampling", "32", "--shm-size", "64MiB"}}
				r := p.start(t)
				await(t, "start", func() bool { return r.pid() > 0 })
				// the ring goes on without listings: what was forced is soon rotated away
				kept, stop := keepFiles(t, r.out)
				var last uint64
				seen := map[string]bool{}
				rounds := 0
				// a busy recorder may come too late, and begin a file without listing
				for ; rounds < 6 && last == 0; rounds++ {
					r.stdinW.WriteString("\n")
					await(t, "a collection", func() bool {
						return strings.Count(r.stdout.String(), "collected\n") > rounds
					})
					for end := time.Now().Add(20 * time.Second); last == 0 &&
						time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
						last = lastForced(kept, method, seen)
					}
				}
				if last == 0 {
					t.Error("the last resort never came")
				}
				r.stdinW.WriteString("\n")
				await(t, "a collection", func() bool {
					return strings.Count(r.stdout.String(), "collected\n") > rounds
				})
				r.stdinW.Close()
				r.finish(t)
				stop()
				verify(t, kept, 1)
				rec := r.recorded(t)
				natural, forced := 0, 0
				for _, l := range r.pauses(t).lines {
					if strings.HasPrefix(l, "Young") && (strings.Contains(l, "Jvmti") ||
						strings.Contains(l, "System.gc")) {
						continue // Parallel's, before the full one in the same stop
					}
					if strings.Contains(l, "Jvmti") {
						forced++
					} else {
						natural++
					}
				}
				if method == "walk" {
					forced = rec.collections + rec.lost - natural
				}
				if forced < 1 || forced > natural+1 {
					t.Errorf("%d stops were forced, %d collections came by themselves", forced, natural)
				}
			})
		})
	}
}

// lastForced gives the number of the newest stop that the last resort made, in the ring files of a folder that seen
// does not name yet; 0: there is none.
func lastForced(dir, method string, seen map[string]bool) (gc uint64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.hcr"))
	for _, path := range files {
		if seen[path] {
			continue
		}
		seen[path] = true
		f, err := ringstore.OpenFile(path)
		if err != nil {
			continue
		}
		for b, err := range f.Blocks() {
			if err != nil || b.Kind != trace.KindEpoch {
				continue
			}
			if e, err := trace.DecodeEpoch(b); err == nil && (method == "walk" && e.Pause.Kind == trace.PauseWalk ||
				method == "gc" && strings.Contains(e.Pause.Cause, "Jvmti")) {
				gc = e.Pause.GC
			}
		}
		f.Close()
	}
	return gc
}
