//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// collectionsOf replays what lies at path.
func collectionsOf(t *testing.T, path string) (out []heap.Collection, zero time.Time) {
	t.Helper()
	rec, err := openRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	src := newSource(rec.Files...)
	defer src.Close()
	r := heap.NewReplay(src)
	for {
		c, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, *c)
	}
	if len(r.Damage)+len(r.Faults) > 0 {
		t.Errorf("%s: %v %v", path, r.Damage, r.Faults)
	}
	return out, time.UnixMilli(int64(r.JVM.T0WallMS))
}

// exactPull is a recording of many files, what is in it, and how it is pulled and checked.
type exactPull struct {
	t            *testing.T
	dir, out, id string
	all          []heap.Collection
	zero         time.Time
	at           map[uint64]int // index in all of the collection that began then
}

// recordForPull has an agent record a model's collections in files of 1 MiB.
func recordForPull(t *testing.T) *exactPull {
	t.Helper()
	dir := t.TempDir()
	rings, out := filepath.Join(dir, "rings"), filepath.Join(dir, "out")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{Out: out, Watch: []string{rings}, MaxTraceSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	p, err := ringtest.Create(rings, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := tracetest.New(tracetest.All(3, trace.CollectorG1, trace.DepthSurvivors))
	const steps = 400
	for i := range steps {
		behind, err := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
		if err != nil {
			t.Fatal(err)
		}
		ep := m.Step(i == 0 || behind > 0)
		if _, err := p.Commit(ep.Blocks...); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(20 * time.Second); i%10 == 9 && p.Peek64(shmring.OffTail) != p.Head() &&
			time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	stop()
	x := &exactPull{t: t, dir: dir, out: out, id: a.Status()[0].ID, at: map[uint64]int{}}
	x.all, x.zero = collectionsOf(t, filepath.Join(out, x.id))
	files, _ := filepath.Glob(filepath.Join(out, x.id, "*.hcr"))
	syncs := 0
	for i, c := range x.all {
		x.at[c.Start] = i
		if c.Synced {
			syncs++
		}
	}
	t.Logf("%d files, %d collections, %d sync points", len(files), len(x.all), syncs)
	if len(files) < 3 || syncs <= len(files) {
		t.Fatalf("%d files, %d sync points: too few to cut between", len(files), syncs)
	}
	return x
}

func (x *exactPull) pull(args ...string) (path, said string, code int) {
	x.t.Helper()
	path = filepath.Join(x.dir, "x.heapcam")
	os.Remove(path)
	c := exec.Command("heapcam", append([]string{"pull", x.id, "--out", x.out, "-o", path}, args...)...)
	b, _ := c.CombinedOutput()
	return path, string(b), c.ProcessState.ExitCode()
}

// stamp is a time of the recording as --since and --until take it.
func (x *exactPull) stamp(ns uint64) string {
	return x.zero.Add(time.Duration(ns)).Format(time.RFC3339Nano)
}

func endOf(c *heap.Collection) uint64 { return c.Start + c.Dur }

// lastSync is the newest collection whose listing was made by then.
func (x *exactPull) lastSync(ns uint64) int {
	at := 0
	for i := range x.all {
		if x.all[i].Synced && endOf(&x.all[i]) <= ns {
			at = i
		}
	}
	return at
}

// check demands that what was pulled opens alone, verifies, and holds the collections from one to another as they were.
func (x *exactPull) check(what, path string, from, to int) {
	t := x.t
	t.Helper()
	got, _ := collectionsOf(t, path)
	if len(got) == 0 || x.at[got[0].Start] != from && x.at[got[0].Start] != from+1 ||
		x.at[got[len(got)-1].Start] != to {
		t.Fatalf("%s: %d collections, %d to %d, want %d to %d", what, len(got), got[0].GC, got[len(got)-1].GC,
			x.all[from].GC, x.all[to].GC)
	}
	for i := range got {
		c := &x.all[x.at[got[i].Start]]
		if c.GC != got[i].GC || got[i].Known && c.Known &&
			(got[i].Objects != c.Objects || got[i].Bytes != c.Bytes) {
			t.Errorf("%s: after collection %d: %d objects, %d bytes, were %d and %d", what, got[i].GC,
				got[i].Objects, got[i].Bytes, c.Objects, c.Bytes)
		}
		if c.Known && !got[i].Known {
			t.Errorf("%s: the state after collection %d is not known any more", what, got[i].GC)
		}
	}
	v, err := verifyAll(path)
	if err != nil || v.Mismatches > 0 || v.Damaged > 0 || ringstore.Worst(v.Verdicts) != ringstore.Sound {
		t.Errorf("%s: verify: %v %+v", what, err, v)
	}
	rec, err := openRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if rec.Manifest == nil || !rec.Manifest.Exact ||
		len(rec.Manifest.Dropped)+len(rec.Manifest.Missing)+len(rec.Manifest.Damaged) > 0 {
		t.Errorf("%s: manifest %+v", what, rec.Manifest)
	}
	first := newSource(rec.Files[0])
	defer first.Close()
	for from > 0 { // a sync point before anything that needs one; what begins with the JVM has had none
		b, err := first.Next()
		if err != nil || b.Kind == trace.KindEpoch {
			t.Fatalf("%s: no sync point at the beginning: %v", what, err)
		}
		if b.Kind == trace.KindSync {
			break
		}
	}
}

// TestPullExact cuts a recording of many files at many instants: what is pulled opens alone, verifies, holds no
// collection that ended after --until and every one from the last sync point before --since on; the same through
// --last, redacted, and without a limit on one side.
func TestPullExact(t *testing.T) {
	t.Parallel()
	x := recordForPull(t)
	short, every := 0, 110
	if os.Getenv("HEAPCAM_FULL") != "" {
		every = 13
	}
	for i := 3; i < len(x.all)-3; i += every {
		since := endOf(&x.all[i]) + 1
		path, said, code := x.pull("--exact", "--since", x.stamp(since))
		if code != 0 || !strings.Contains(said, "the pull begins at ") {
			t.Fatalf("%d %s", code, said)
		}
		x.check(fmt.Sprintf("since behind collection %d", x.all[i].GC), path, x.lastSync(since), len(x.all)-1)
		st, _ := os.Stat(path)
		whole, _, _ := x.pull("--since", x.stamp(since))
		if wst, _ := os.Stat(whole); st.Size() < wst.Size() {
			short++
		}

		j := min(i+17, len(x.all)-2)
		until := endOf(&x.all[j])
		path, said, code = x.pull("--exact", "--since", x.stamp(since), "--until", x.stamp(until))
		if code != 0 || !strings.Contains(said, fmt.Sprintf("the pull ends with collection %d at ",
			x.all[j].GC)) {
			t.Fatalf("%d %s", code, said)
		}
		x.check(fmt.Sprintf("collections %d to %d", x.all[i].GC, x.all[j].GC), path, x.lastSync(since), j)
		if path, said, code = x.pull("--exact", "--redact", "--until", x.stamp(until-1)); code != 0 {
			t.Fatalf("%d %s", code, said)
		}
		x.check(fmt.Sprintf("redacted, until just before the end of collection %d", x.all[j].GC), path, 0, j-1)
	}
	if short == 0 {
		t.Error("no beginning was cut within a file")
	}
	last := time.Duration(x.all[len(x.all)-1].Start - x.all[len(x.all)/2].Start)
	path, said, code := x.pull("--exact", "--last", last.String())
	if code != 0 || !strings.Contains(said, " more than --last ") ||
		!strings.Contains(said, " (a recording can begin at a sync point only") {
		t.Fatalf("%d %s", code, said)
	}
	rec, err := openRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	x.check("--last", path, x.lastSync(rec.Manifest.ToNS-uint64(last)), len(x.all)-1)
	rec.Close()
	x.saysWhatIsNotCut(last)
}

// saysWhatIsNotCut demands that a pull says how far it is from what was asked for, and refuses what cannot be cut.
func (x *exactPull) saysWhatIsNotCut(last time.Duration) {
	t := x.t
	for _, c := range []struct {
		want string
		args []string
	}{
		{"begins at .* before --since (files are copied whole; --exact cuts closer)",
			[]string{"--since", x.stamp(endOf(&x.all[len(x.all)/2]))}},
		{"begins at .* after --since: nothing older is recorded", []string{"--since", "2001-01-01T00:00:00Z"}},
		{"more than --last .* (files are copied whole; --exact cuts closer)", []string{"--last", last.String()}},
		{"less than --last .*: the recording has no more", []string{"--last", "10000h"}},
		{"larger than --last .*: files are copied whole", []string{"--last", "1KiB"}},
		{"smaller than --last .*: the recording has no more", []string{"--last", "10GiB"}},
	} {
		_, said, code := x.pull(c.args...)
		ok := code == 0
		for _, part := range strings.Split(c.want, ".*") {
			ok = ok && strings.Contains(said, part)
		}
		if !ok {
			t.Errorf("%v: %d %s, want %s", c.args, code, said, c.want)
		}
	}
	for _, args := range [][]string{{"--exact"}, {"--exact", "--last", "1MiB"},
		{"--since", x.stamp(2e9), "--until", x.stamp(1e9)}} {
		if _, said, code := x.pull(args...); code != exitUsage {
			t.Errorf("%v: %d %s", args, code, said)
		}
	}
	if _, said, code := x.pull("--exact", "--until", "2001-01-01T00:00:00Z"); code != exitNotFound ||
		!strings.Contains(said, "no data of this time") {
		t.Errorf("%d %s", code, said)
	}
}
