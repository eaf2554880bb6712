//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// oddRecordings change the blocks of a recording to what no healthy JVM writes, and the format allows.
var oddRecordings = map[string]func(i int, b trace.Block) (trace.Block, bool){
	"as it is":       func(_ int, b trace.Block) (trace.Block, bool) { return b, true },
	"no collections": func(_ int, b trace.Block) (trace.Block, bool) { return b, b.Kind == trace.KindMeta },
	"one collection": func(i int, b trace.Block) (trace.Block, bool) { return b, i == 0 },
	"no samples":     func(_ int, b trace.Block) (trace.Block, bool) { return b, b.Kind != trace.KindSamples },
	"no listing":     func(_ int, b trace.Block) (trace.Block, bool) { return b, b.Kind != trace.KindSync },
	"no definitions": func(_ int, b trace.Block) (trace.Block, bool) { return b, b.Kind != trace.KindDefs },
	"no time":        pauses(func(_ int, p *trace.Pause) { p.Start, p.Dur, p.Probe, p.PhaseStart = 0, 0, 0, 0 }),
	"no length":      pauses(func(_ int, p *trace.Pause) { p.Dur, p.Probe = 0, 0 }),
	"back":           pauses(func(i int, p *trace.Pause) { p.Start = uint64(1000-i) * 1e9; p.PhaseStart = p.Start }),
	"long":           pauses(func(_ int, p *trace.Pause) { p.Dur, p.Probe = trace.MaxTime/1000, trace.MaxTime/1000 }),
	"ages": pauses(func(i int, p *trace.Pause) {
		if i > 5 {
			p.Start = trace.MaxTime
		}
	}),
	"jump":        pauses(func(i int, p *trace.Pause) { p.Start = uint64(i*7919%13) * (trace.MaxTime / 13) }),
	"one number":  pauses(func(_ int, p *trace.Pause) { p.GC = 7 }),
	"last number": pauses(func(_ int, p *trace.Pause) { p.GC = trace.MaxCount }),
	"meta": func(_ int, b trace.Block) (trace.Block, bool) {
		if b.Kind == trace.KindMeta {
			m, err := trace.DecodeMeta(b)
			if err != nil {
				panic(err)
			}
			m.JVM.T0WallMS, m.JVM.StartMS, m.JVM.MaxHeap = trace.MaxTime, trace.MaxTime, 0
			m.JVM.Interval, m.JVM.Major = 0, 0
			return again(b, trace.EncodeMeta(m)), true
		}
		return b, true
	},
}

func again(was, b trace.Block) trace.Block {
	b.Seq, b.Version, b.Flags = was.Seq, was.Version, was.Flags
	return b
}

func pauses(f func(i int, p *trace.Pause)) func(int, trace.Block) (trace.Block, bool) {
	return func(i int, b trace.Block) (trace.Block, bool) {
		if b.Kind != trace.KindEpoch {
			return b, true
		}
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			panic(err)
		}
		f(i, &e.Pause)
		return again(b, trace.EncodeEpoch(e)), true
	}
}

func oddRing(t *testing.T, dir string, change func(int, trace.Block) (trace.Block, bool)) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "odd", VM: "vm", Probe: "p"})
	if err != nil {
		t.Fatal(err)
	}
	m := tracetest.New(tracetest.Config{Seed: 1, SampleEvery: 2})
	for i := range 30 {
		var frame []byte
		for _, b := range m.Step(i%10 == 0).Blocks {
			if b, ok := change(i, b); ok {
				frame = trace.AppendBlock(frame, b)
			}
		}
		write := s.Append
		if i%10 == 0 {
			write = s.Rotate
		}
		n := uint64(i + 1)
		if err := write(frame, ringstore.FrameInfo{Source: n, FirstGC: n, LastGC: n, T0: n, T1: n}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// nonsense is what a figure must not look like.
var nonsense = regexp.MustCompile(`NaN|Inf\b|-[0-9.]+ ?(ns|µs|ms|s|min|h|d|B|KiB|MiB|%)\b|\b1 [a-z]+s in\b|` +
	`1844674407370955|-9223372036854775808|%!|panic`)

// tellsNothing are those that show no leak and exclude none.
var tellsNothing = []string{"no collections", "one collection", "no samples", "no listing", "no definitions", "no time",
	"one number", "last number", "back"}

var readingVerbs = []string{"report R", "report --json R", "leaks R", "leaks --json R", "coverage R",
	"coverage --json R", "cost R", "cost --json R", "histogram --sites R", "histogram --json R", "history R",
	"history --json R", "history --sync-points R", "trend R", "trend --json R", "trend --survival R",
	"trend --survival --json R", "diff R", "diff --json R", "verify R", "verify --json R", "group --by type,site R",
	"export --format pprof -o - R", "export --format collapsed -o - R", "export --format csv -o - R",
	"export --format csv --table history -o - R", "export --format csv --table samples -o - R",
	"export --format hprof -o - R", "export --format parquet -o - R", "diff R R", "pull -o x.heapcam R",
	"report x.heapcam", "pull --last 1m -o - R"}

// TestOddRecordings reads recordings whose figures are degenerate: no panic, no nonsense, no endless work.
func TestOddRecordings(t *testing.T) {
	tiers.Gate(t, "all verbs on each odd recording")
	for name, change := range oddRecordings {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			oddRing(t, "rec/odd-1-a", change)
			for _, args := range readingVerbs {
				a := strings.Fields(args)
				for i := range a {
					if a[i] == "R" {
						a[i] = "rec/odd-1-a"
					}
				}
				begun := time.Now()
				code := -1
				var trouble any
				out, errs := talk(t, func() {
					defer func() {
						if trouble = recover(); trouble != nil {
							trouble = fmt.Sprintf("%v\n%s", trouble, debug.Stack())
						}
					}()
					code = run(a)
				})
				if trouble != nil {
					t.Errorf("%s: %v", args, trouble)
				}
				if d := time.Since(begun); d > time.Minute { // tenths of a second where nothing else runs
					t.Errorf("%s takes %v", args, d)
				}
				text := string(out) + string(errs)
				if strings.Contains(args, "-o -") && !strings.Contains(args, "csv") {
					text = string(errs)
				}
				if (args == "report R" || args == "leaks R") &&
					strings.HasPrefix(text, "Cannot tell") != slices.Contains(tellsNothing, name) {
					t.Errorf("%s: %.200s", args, text)
				}
				if name == "back" && strings.Contains(text, " d ") {
					t.Errorf("%s: a time that went back lasted days: %.400s", args, text)
				}
				if !slices.Contains([]int{exitOK, exitFailed, exitUsage, exitNotFound, exitDamaged, exitMismatch},
					code) {
					t.Errorf("%s: exit status %d: %s", args, code, errs)
				}
				if x := nonsense.FindStringIndex(text); x != nil {
					t.Errorf("%s: %q", args, text[max(0, x[0]-80):min(len(text), x[1]+40)])
				}
			}
		})
	}
}

// pulled gives what a pull of a folder is.
func pulled(t *testing.T, dir string) *ringstore.Recording {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "pulled.hcz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ringstore.Pull(t.Context(), dir, f, ringstore.PullOptions{}); err != nil {
		t.Fatal(err)
	}
	rec, err := ringstore.OpenRecording(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rec.Close() })
	return rec
}

// TestUnended: of an incident without an end marker the report says that it was frozen, unless its JVM had ended.
func TestUnended(t *testing.T) {
	n := incidentsIn(t.TempDir(), 1<<30)
	for ended, want := range map[bool]string{false: "none: it was frozen", true: ""} {
		// The text says nothing, and there may be none.
		reason := map[bool]string{false: "the JVM ended without an end marker"}[ended]
		n.Ended = ended
		ring := filepath.Join(t.TempDir(), "app-1-a")
		if err := os.Mkdir(ring, 0o700); err != nil {
			t.Fatal(err)
		}
		oddRing(t, ring, func(_ int, b trace.Block) (trace.Block, bool) { return b, true })
		i, err := n.Freeze(ring, ringstore.CauseAsked, reason)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := ringstore.OpenRecording(n.Path(i.ID))
		if err != nil {
			t.Fatal(err)
		}
		if got := unended(rec); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%v: %q", ended, got)
		}
		rec.Close()
		if got := unended(pulled(t, n.Path(i.ID))); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%v, pulled: %q", ended, got)
		}
		if got := unended(pulled(t, ring)); got != "" {
			t.Errorf("%q of a pull of no incident", got)
		}
	}
}
