package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
)

// leaking and innocent are the programs of java/leaks.
var (
	leaking = []string{"SlowList", "SessionMap", "Listeners", "ThreadLocals", "Loaders", "Interning", "Timers",
		"OwnNodes", "BrokenKey", "Backlog"}
	innocent = []string{"CacheFills", "Sawtooth", "Released", "Warm", "Churn", "Stable", "Sessions",
		"Reports", "StepUp",
		"Catalog", "Bounded", "Softly",
		"Batches"}
)

type leaksReply struct {
	Schema   string `json:"schema"`
	Verdicts []struct {
		Kind           string  `json:"kind"`
		Class          string  `json:"class"`
		Site           []frame `json:"site"`
		Confidence     float64 `json:"confidence"`
		BytesPerSecond float64 `json:"bytes_per_second"`
		Sentence       string  `json:"sentence"`
	} `json:"verdicts"`
}

// leakLines are the lines of a program that are marked.
func leakLines(t *testing.T, name string) (lines []int) {
	b, err := os.ReadFile(filepath.Join("java/leaks", name+".java"))
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range strings.Split(string(b), "\n") {
		if strings.Contains(l, "// LEAK") {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// TestLeaks records programs that leak and programs that do not: of the former the first verdict is the marked line,
// the latter leak nothing; at most every fifth has a suspect (bench/leaks counts how often). Small: one of each on one
// collector, for seconds; full: all of them for a minute on all collectors and JDKs at default settings.
func TestLeaks(t *testing.T) {
	tiers.Gate(t, "leaks and innocent programs, half a minute each")
	t.Parallel()
	type run struct {
		major         int
		gc, heap, sec string
		flags, progs  []string
	}
	runs := []run{{17, "G1", "48m", "16", []string{"--sampling", "64KiB"}, []string{"SlowList", "Churn"}}}
	if full {
		runs = nil
		for _, major := range []int{17, 25} {
			for _, gc := range collectors {
				runs = append(runs, run{major, gc, "256m", "60", nil, append(slices.Clone(leaking), innocent...)})
			}
		}
	} else {
		t.Log("not run: 21 more programs, 5 more pairs, a minute each (HEAPCAM_FULL=1)")
	}
	var clean, suspect atomic.Int64 // of innocent programs
	for _, c := range runs {
		t.Run(fmt.Sprintf("%s/%d", c.gc, c.major), func(t *testing.T) {
			for _, name := range c.progs {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					heap := c.heap
					// only a collection of old space tells a chain that no array holds from garbage
					if name == "OwnNodes" {
						heap = "64m"
					}
					p := program{major: c.major, gc: c.gc, heap: heap, main: name, args: []string{c.sec},
						flags: c.flags,
						limit: "64MiB"}
					r := p.start(t)
					r.finish(t)
					dir := r.recorded(t).dir
					var l leaksReply
					heapcamJSON(t, &l, "leaks", dir)
					_, _, code := heapcam(t, "leaks", "--fail-on-suspect", dir)
					leaks := slices.Contains(leaking, name)
					if want := map[bool]int{true: 9}[len(l.Verdicts) > 0]; code != want || l.Verdicts == nil ||
						l.Schema != "heapcam.leaks/2" {
						t.Errorf("--fail-on-suspect: status %d with %d verdicts", code, len(l.Verdicts))
					}
					if !leaks {
						switch {
						case len(l.Verdicts) == 0:
							clean.Add(1)
						case l.Verdicts[0].Kind == "suspect": // the worst comes first
							suspect.Add(1)
							t.Logf("suspect: %s", l.Verdicts[0].Sentence)
						default:
							t.Errorf("named: %+v", l.Verdicts[0])
						}
						return
					}
					lines := leakLines(t, name)
					if len(l.Verdicts) == 0 || !slices.ContainsFunc(l.Verdicts[0].Site, func(f frame) bool {
						return strings.HasPrefix(f.Class, name) && f.Line != nil && slices.Contains(lines, *f.Line)
					}) {
						t.Errorf("lines %v are not named first: %+v", lines, l.Verdicts)
					}
				})
			}
		})
	}
	if n := suspect.Load(); 5*n > n+clean.Load() {
		t.Errorf("%d innocent programs have a suspect, %d are clean", n, clean.Load())
	}
	t.Logf("innocent: %d clean, %d with a suspect", clean.Load(), suspect.Load())
}
