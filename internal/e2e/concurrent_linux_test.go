package e2e

import (
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// withoutAddresses are the collectors of which samples alone are recorded.
var withoutAddresses = []struct {
	name, collector, heap string
	opts                  []string
	drop                  int // objects a second that the program drops
	last                  int // JDK that has the options, 0: all from 17 on
}{
	{"ZGC", "ZGC", "300m", []string{"-XX:+UseZGC"}, 2_000_000, 0},
	{"ZGenerational", "ZGC", "300m", []string{"-XX:+UseZGC", "-XX:+ZGenerational"}, 2_000_000, 21},
	{"Shenandoah", "Shenandoah", "300m", []string{"-XX:+UseShenandoahGC"}, 2_000_000, 0},
	{"Epsilon", "Epsilon", "2g", []string{"-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"}, 500_000, 0},
}

// eachWithoutAddresses runs f on every such collector of every JDK. all: also on Epsilon, which never collects. In the
// short rounds it runs f on one collector and JDK, by turns; TestWatched has them all.
func eachWithoutAddresses(t *testing.T, all bool, f func(t *testing.T, major, i int)) {
	type on struct{ i, major int }
	var chosen []on
	for i, c := range withoutAddresses {
		first := 17
		if c.last != 0 { // generations came with 21
			first = 21
		}
		if c.name == "Epsilon" && !all {
			continue
		}
		majors := between(first, c.last)
		if t.Name() == "TestWatched" {
			majors = someMajors(c.name, majors)
		}
		for _, major := range majors {
			chosen = append(chosen, on{i, major})
		}
	}
	if !full && t.Name() != "TestWatched" && len(named()) == 0 && len(chosen) > 0 {
		chosen = chosen[int(crc32.ChecksumIEEE([]byte(t.Name()))%uint32(len(chosen))):][:1]
	}
	for _, c := range chosen {
		t.Run(fmt.Sprintf("%s/%d", withoutAddresses[c.i].name, c.major), func(t *testing.T) { f(t, c.major, c.i) })
	}
}

type siteRow struct {
	Class       string  `json:"class"`
	Site        []frame `json:"site"`
	Samples     uint64  `json:"samples"`
	Objects     float64 `json:"objects"`
	ObjectsLow  float64 `json:"objects_low"`
	ObjectsHigh float64 `json:"objects_high"`
}

// watchedReply is what a report says of a JVM whose objects have no address.
type watchedReply struct {
	Collector   string `json:"collector"`
	Collections []struct {
		JVMGC uint64 `json:"jvm_gc"`
		Kind  string `json:"kind"`
		Used  uint64 `json:"used_bytes"`
	} `json:"collections"`
	Sites   []siteRow `json:"sites"`
	Samples uint64    `json:"samples"`
	Lost    uint64    `json:"lost_epochs"`
	Watched struct {
		Samples   uint64    `json:"samples"`
		Live      int       `json:"live"`
		Allocated []siteRow `json:"allocated"`
	} `json:"watched"`
}

// at finds the row of a class and the method that allocates it.
func at(rows []siteRow, class, method string) siteRow {
	for _, r := range rows {
		if len(r.Site) > 0 && r.Class == class && r.Site[0].Method == method &&
			strings.HasPrefix(r.Site[0].Class, "Watched") {
			return r
		}
	}
	return siteRow{}
}

var gcNumber = regexp.MustCompile(`GC\((\d+)\)`)

// logged gives the numbers of the collections in the JVM's log.
func logged(t *testing.T, gclog string) (all []uint64) {
	t.Helper()
	b, err := os.ReadFile(gclog)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range gcNumber.FindAllStringSubmatch(string(b), -1) {
		n, _ := strconv.ParseUint(m[1], 10, 64)
		all = append(all, n)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// cycles gives the numbers of the cycles of a recording, as in the JVM's log.
func (w *watchedReply) cycles() (all []uint64) {
	for _, c := range w.Collections {
		if c.Kind != "reading" {
			all = append(all, c.JVMGC)
		}
	}
	slices.Sort(all)
	return all
}

// runWatched runs the program Watched for some seconds; it is skipped where the JDK has no such collector.
func runWatched(t *testing.T, major, i, seconds int, opts ...string) (*running, watchedReply) {
	t.Helper()
	c := withoutAddresses[i]
	p := program{major: major, heap: c.heap, opts: append(slices.Clone(c.opts), opts...), main: "Watched",
		args:  []string{strconv.Itoa(seconds), "20000", strconv.Itoa(c.drop), "gc"},
		flags: []string{"--sampling", "64KiB"}, limit: "16MiB"}
	r := p.start(t)
	if code := r.wait(t); code != 0 && strings.Contains(r.stdout.String()+r.stderr.String(), "Unrecognized VM option") {
		t.Skipf("not run: %s (JDK %d is built without it)", c.name, major)
	} else if code != 0 || !strings.HasSuffix(r.stdout.String(), "done\n") {
		t.Fatalf("status %d", code)
	}
	if lines := r.probeLines(); len(lines) > 0 {
		t.Errorf("the probe says %q", lines)
	}
	dir := r.recorded(t).dir
	verify(t, dir, 1)
	var rep watchedReply
	heapcamJSON(t, &rep, "report", dir)
	return r, rep
}

// TestWatched runs a program of which it is known what it allocates and what lives, with collectors whose objects have
// no address: sites of all samples, what lives of those that are watched, and each cycle that is in the JVM's log.
func TestWatched(t *testing.T) {
	tiers.Gate(t, "collectors without addresses, ten seconds each")
	t.Parallel()
	const seconds = 8
	eachWithoutAddresses(t, true, func(t *testing.T, major, i int) {
		c := withoutAddresses[i]
		r, rep := runWatched(t, major, i, seconds)
		if rep.Collector != c.collector || rep.Lost != 0 {
			t.Errorf("%s, %d collections lost", rep.Collector, rep.Lost)
		}
		if c.name == "Epsilon" {
			if n := rep.cycles(); len(n) != 0 {
				t.Errorf("cycles %v of a JVM that never collects", n)
			}
		} else if got, want := rep.cycles(), logged(t, r.gclog); !slices.Equal(got, want) {
			t.Errorf("cycles %v, the JVM logged %v", got, want)
		}
		for class, n := range map[string]float64{"Leaked": 20000 * seconds, "Dropped": float64(c.drop) * seconds} {
			method := strings.ToLower(class[:4])
			if row := at(rep.Watched.Allocated, "Watched$"+class, method); !within(row, n, 1.5) {
				t.Errorf("%s allocated %.0f, estimated %.0f (%.0f to %.0f)", method, n, row.Objects,
					row.ObjectsLow, row.ObjectsHigh)
			}
		}
		// The estimate rests on few samples: it may miss, but not by much.
		if row := at(rep.Sites, "byte[]", "<init>"); row.Samples > 0 && !within(row, 20000, 4) {
			t.Errorf("20000 kept, estimated %.0f (%.0f to %.0f)", row.Objects, row.ObjectsLow, row.ObjectsHigh)
		}
		live, all := at(rep.Sites, "Watched$Dropped", "drop"), at(rep.Watched.Allocated, "Watched$Dropped", "drop")
		if c.name == "Epsilon" {
			if !within(live, all.Objects, 3) {
				t.Errorf("%.0f objects live, %.0f were allocated, none is ever freed", live.Objects, all.Objects)
			}
		} else if live.Objects > all.Objects/20 {
			t.Errorf("%.0f of %.0f dropped objects live", live.Objects, all.Objects)
		}
		if leak := at(rep.Sites, "Watched$Leaked", "leak"); !within(leak, 20000*seconds*0.6, 3) {
			t.Errorf("%d leaked, %.0f live (%.0f to %.0f)", 20000*seconds, leak.Objects, leak.ObjectsLow,
				leak.ObjectsHigh)
		}
	})
}

// within says whether a number is in the interval of a row, widened by a factor.
func within(r siteRow, n, factor float64) bool {
	return n >= r.ObjectsLow/factor && n <= r.ObjectsHigh*factor
}

// TestWatchedCheckJNI runs the same with -Xcheck:jni, which must have nothing to say.
func TestWatchedCheckJNI(t *testing.T) {
	t.Parallel()
	eachWithoutAddresses(t, true, func(t *testing.T, major, i int) {
		r, rep := runWatched(t, major, i, 2, "-Xcheck:jni")
		out := r.stdout.String()
		if strings.Contains(out, "WARNING") || strings.Contains(out, "FATAL") || rep.Samples == 0 {
			t.Errorf("-Xcheck:jni, %d samples:\n%s", rep.Samples, tail(out))
		}
	})
}

var weakRefs = regexp.MustCompile(`weak refs: (\d+)`)

// weakGlobals asks the JVM how many weak globals it has.
func (r *running) weakGlobals(t *testing.T, major int) int {
	t.Helper()
	out, err := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"), r.pidText(), "Thread.print").Output()
	m := weakRefs.FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("jcmd Thread.print: %v\n%s", err, tail(string(out)))
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}

// TestWatchedAttach attaches to a running JVM and detaches again, twice: while it is recorded it has weak globals, and
// afterwards as many as before.
func TestWatchedAttach(t *testing.T) {
	tiers.Gate(t, "attaching to collectors without addresses")
	t.Parallel()
	d := newDaemon(t, "--max-trace-size", "16MiB", "--emergency", "off", "--sampling", "64KiB")
	d.start(t)
	eachWithoutAddresses(t, false, func(t *testing.T, major, i int) {
		c := withoutAddresses[i]
		p := program{major: major, heap: c.heap, opts: c.opts, main: "Watched",
			args: []string{"60", "20000", "2000000"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		before := r.weakGlobals(t, major)
		var dirs []string
		for range 2 {
			if errs, code := d.attach(t, r.pidText()); code != 0 {
				t.Fatalf("attach: status %d: %s", code, errs)
			}
			var s session.Status
			find := func() bool {
				for _, s = range d.status(t).JVMs {
					if s.PID == r.pid() && !slices.Contains(dirs, s.Dir) {
						return true
					}
				}
				return false
			}
			await(t, "cycles", func() bool { return find() && s.LastGC > 4 && s.Samples > 100 })
			if s.Depth != "samples" {
				t.Errorf("depth %s", s.Depth)
			}
			if n := r.weakGlobals(t, major); n <= before {
				t.Errorf("%d weak globals while it is recorded, %d before", n, before)
			}
			if _, errs, code := heapcam(t, "detach", r.pidText(), "--socket", d.sock); code != 0 {
				t.Fatalf("detach: status %d: %s", code, errs)
			}
			await(t, "the end of the recording", func() bool { return find() && s.Phase.Over() })
			await(t, "the weak globals gone", func() bool { return r.weakGlobals(t, major) <= before })
			verify(t, s.Dir, 1)
			dirs = append(dirs, s.Dir)
		}
	})
	d.stop(t)
}

// TestWatchedKill kills a JVM at a random moment: what was recorded up to then can be read.
func TestWatchedKill(t *testing.T) {
	t.Parallel()
	eachWithoutAddresses(t, false, func(t *testing.T, major, i int) {
		c := withoutAddresses[i]
		p := program{major: major, heap: c.heap, opts: c.opts, main: "Watched",
			args: []string{"60", "20000", "2000000"}, limit: "1MiB"}
		r := p.start(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		await(t, "cycles", func() bool {
			b, _ := os.ReadFile(r.gclog)
			cycles := map[string]bool{} // each has several lines
			for _, n := range gcNumber.FindAll(b, -1) {
				cycles[string(n)] = true
			}
			return len(cycles) > 5
		})
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
		if err := syscall.Kill(r.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code := r.wait(t); code != 128+9 {
			t.Errorf("status %d, want 137", code)
		}
		dir := r.recorded(t).dir
		verify(t, dir, 1)
		rec, err := ringstore.OpenRecording(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer rec.Close()
		cycles := 0
		for _, f := range rec.Files {
			for b, err := range f.Blocks() {
				if err != nil {
					t.Error(err)
				} else if e, err := trace.DecodeEpoch(b); err == nil && e.HasCycle && e.Cycle.Pauses > 0 {
					cycles++
				}
			}
		}
		if cycles == 0 {
			t.Error("no cycle is in the recording")
		}
	})
}
