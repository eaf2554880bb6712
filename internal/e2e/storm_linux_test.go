package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// stormOf is what a recording, or an incident, has of a storm of full collections.
type stormOf struct {
	full, leftOut, listed int
	last, end             uint64  // when the newest complete listing and the newest pause were, ns
	worst                 float64 // the largest share that the probe took of ten seconds, by its own clock
}

func readStorm(t *testing.T, path string) (s stormOf) {
	t.Helper()
	rec, err := ringstore.OpenRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	type point struct{ at, cost uint64 }
	var points []point
	sum := uint64(0)
	took := func(at, ns uint64) {
		points = append(points, point{at, ns})
		for sum += ns; points[0].at+10e9 < at; points = points[1:] {
			sum -= points[0].cost
		}
		s.worst = max(s.worst, float64(sum)/10e9)
	}
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindEpoch:
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					t.Fatal(err)
				}
				p := e.Pause
				s.end = p.Start + p.Dur
				if p.Kind == trace.PauseFull {
					s.full++
				}
				if p.Flags&trace.PauseLeftOut != 0 {
					s.leftOut++
				}
				took(s.end, p.Probe)
			case trace.KindSync:
				y, err := trace.DecodeSync(b)
				if err != nil {
					t.Fatal(err)
				}
				s.listed++
				s.last = y.Time
				took(y.Time, y.Probe)
			}
		}
	}
	return s
}

// TestStormBudget: in a storm not every full collection is listed, which is counted; the exhaustion has an
// incident, also if the storm has one, with a complete listing of what filled the heap; a JVM that ends by
// ExitOnOutOfMemoryError, without an event, is recognised.
func TestStormBudget(t *testing.T) {
	tiers.Gate(t, "the budget in a storm")
	type end struct {
		name string
		opts []string
		why  string
	}
	for i, c := range parts(t, end{"error", nil, trace.Exhausted{}.String()},
		end{"exit", []string{"-XX:+ExitOnOutOfMemoryError"}, "full: out of memory, most likely"}) {
		t.Run(c.name, func(t *testing.T) {
			p := program{major: []int{17, 25}[i], gc: []string{"Serial", "Parallel"}[i], heap: "96m", main: "Exhaust",
				args: []string{"85", "4"}, opts: append(c.opts, "-XX:-UseGCOverheadLimit"), limit: "256MiB",
				flags: []string{"--overhead-cpu", "2%"}}
			r := p.start(t)
			r.wait(t)
			rec := r.recorded(t)
			s := readStorm(t, rec.dir)
			t.Logf("%d full collections, %d left out, %d listed, the last %v before the end, worst ten seconds %.1f %%",
				s.full, s.leftOut, s.listed, time.Duration(s.end-s.last).Round(time.Millisecond), 100*s.worst)
			if s.leftOut == 0 || s.listed >= s.full {
				t.Errorf("%d full collections: %d listings, %d left out", s.full, s.listed, s.leftOut)
			}
			n := &ringstore.Incidents{Dir: filepath.Join(r.out, "incidents")}
			all, err := n.List()
			if err != nil {
				t.Fatal(err)
			}
			found := ""
			for _, i := range all {
				if strings.Contains(i.Reason, c.why) {
					found = i.ID
				}
			}
			if found == "" {
				t.Fatalf("no incident of the exhaustion: %+v", all)
			}
			kept := readStorm(t, n.Path(found))
			if kept.listed == 0 || kept.full-s.full > 1 {
				t.Errorf("the incident has %d of %d full collections and %d listings", kept.full, s.full, kept.listed)
			}
			// This JVM ends when its memory has run out, mostly with a listing of that moment, which takes a stop.
			if c.opts == nil && kept.last+uint64(10*time.Second) < kept.end {
				t.Errorf("the heap as it was when memory ran out is not listed: %d before %d", kept.last, kept.end)
			}
			verify(t, rec.dir, 1)
		})
	}
}

// TestFullCollectionsOnly: where each collection is a full one and would end a listing that is spread over pauses, the
// heap state is known all the same.
func TestFullCollectionsOnly(t *testing.T) {
	t.Parallel()
	p := program{major: 17, gc: "Parallel", heap: "256m", main: "Stable", args: []string{"14"}, limit: "64MiB"}
	r := p.start(t)
	r.finish(t)
	rec := r.recorded(t)
	out, errs, code := heapcam(t, "histogram", "--top", "1", rec.dir)
	if code != 0 || !strings.Contains(out, "long[]") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	verify(t, rec.dir, 1)
}
