package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

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

// faults counts the collections of a recording whose fates a check or the guard dropped.
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

// TestCompressionNone records without compression into a ring that rotates: what was replayed is what was listed, and the frames are plain.
func TestCompressionNone(t *testing.T) {
	eachPair(t, []int{17}, []string{"Serial", "G1"}, func(t *testing.T, major int, gc string) {
		end := filepath.Join(t.TempDir(), "end")
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{end, "20000", "12"}, limit: "32MiB", flags: []string{"--compression", "none", "--emergency", "off"}}
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

// TestEmergency records a program that never collects for long: the samples alone fill the ring until the last resort makes a listing of its
// own, by a walk or by a collection. One is made a phase between natural collections and no more; it agrees with what was replayed before it
// and what is replayed from it agrees with the listings behind it.
func TestEmergency(t *testing.T) {
	for _, method := range []string{"walk", "gc"} {
		t.Run(method, func(t *testing.T) {
			majors, gcs := []int{17}, map[string][]string{"walk": {"Serial", "G1"}, "gc": {"Parallel"}}[method]
			if full {
				majors, gcs = []int{17, 25}, collectors
			}
			eachPair(t, majors, gcs, func(t *testing.T, major int, gc string) {
				p := program{major: major, gc: gc, heap: "1g", opts: []string{"-Xmn900m"}, main: "Quiet", args: []string{"40"}, limit: "1MiB",
					flags: []string{"--emergency", method, "--sampling", "128", "--ring", "64MiB"}}
				r := p.start(t)
				await(t, "start", func() bool { return r.pid() > 0 })
				var last uint64
				for i := range 2 {
					r.stdinW.WriteString("\n")
					await(t, "a collection", func() bool { return strings.Count(r.stdout.String(), "collected\n") > i })
					await(t, "the last resort", func() bool {
						dirs, _ := filepath.Glob(filepath.Join(r.out, "*"))
						if len(dirs) != 1 {
							return false
						}
						now := max(last, lastForced(dirs[0], method))
						was := last
						last = now
						return now > was
					})
				}
				r.stdinW.WriteString("\n")
				await(t, "a collection", func() bool { return strings.Count(r.stdout.String(), "collected\n") > 2 })
				r.stdinW.Close()
				r.finish(t)
				rec := r.recorded(t)
				verify(t, rec.dir, 1)
				// Three collections of its own, one forced between each two of them and maybe one before and after.
				if n := rec.collections + rec.lost; n < 5 || n > 7 {
					t.Errorf("%d collections and walks", n)
				}
			})
		})
	}
}

// lastForced gives the number of the newest stop in a recording that the last resort made; 0: there is none.
func lastForced(dir, method string) (gc uint64) {
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
			if e, err := trace.DecodeEpoch(b); err == nil && (method == "walk" && e.Pause.Kind == trace.PauseWalk || method == "gc" && strings.Contains(e.Pause.Cause, "Jvmti")) {
				gc = e.Pause.GC
			}
		}
	}
	return gc
}
