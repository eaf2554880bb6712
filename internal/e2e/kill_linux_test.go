package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// killTable returns a function that appends a row to a table of docs/benchmarks/DATE-kills.md in the long rounds. In
// short rounds that function does nothing.
func killTable(t *testing.T, about, columns string) func(cells ...any) {
	if !full {
		return func(...any) {}
	}
	return results(t, "kills.md", "Kills and limits", "What happened to JVMs and recorders that were killed at random "+
		"moments, and what rings occupied on a real disk.", about, columns)
}

// TestKillJVM kills JVMs at random moments: everything up to the last finished collection is there. The JVM logs a
// pause before the probe hears of its end, so one logged pause may be missing: the one in which the kill came.
func TestKillJVM(t *testing.T) {
	t.Parallel()
	needReader(t)
	rounds := 3
	if full {
		rounds = 20
	}
	row := killTable(t, "Killing the JVM", "round | pair | killed after, ms | stops that the JVM logged | collections "+
		"recorded | last in the pulled report | mismatches")
	for i := range rounds {
		gc, major := collectors[(i+1)%len(collectors)], majors()[i%len(majors())]
		t.Run(gc, func(t *testing.T) {
			p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{untilKilled, "20000", "0"},
				limit: "4MiB", flags: []string{"--emergency", "off", "--shm-size", "64MiB"}}
			r := p.start(t)
			begun := time.Now()
			await(t, "the first collections", func() bool { return r.stops() >= 3 })
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
			after := time.Since(begun).Milliseconds()
			if err := syscall.Kill(r.pid(), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if code := r.wait(t); code != 128+9 {
				t.Errorf("status %d, want 137", code)
			}
			rec, logged := r.recorded(t), r.pauses(t).stops
			if d := logged - rec.collections; d < 0 || d > 1 {
				t.Errorf("%d collections recorded, the JVM logged %d", rec.collections, logged)
			}
			file := filepath.Join(t.TempDir(), "incident.heapcam")
			if out, errs, code := heapcam(t, "pull", "--out", r.out, "-o", file); code != 0 {
				t.Fatalf("pull: status %d\n%s%s", code, out, errs)
			}
			v := verify(t, file, 1)
			var rep reportReply
			heapcamJSON(t, &rep, "report", file)
			n := len(rep.Collections)
			if n == 0 || int(rep.Collections[n-1].GC) < logged-1 {
				t.Fatalf("the report ends at %v, the JVM logged %d pauses", rep.Collections[max(0, n-1):], logged)
			}
			row(i+1, fmt.Sprintf("%s/%d", gc, major), after, logged, rec.collections,
				rep.Collections[n-1].GC, v.Mismatches)
		})
	}
}

// untilKilled names a file that nobody makes.
const untilKilled = "/nonexistent/heapcam-e2e"

// ended says that a process has ended, be it that nobody has waited for it yet.
func ended(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

// TestKillRecorder kills `heapcam run` under load: the JVM does not notice.
func TestKillRecorder(t *testing.T) {
	t.Parallel()
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: majors()[0], gc: "G1", heap: "64m", main: "Until", args: []string{end, "20000", "0"},
		limit: "4MiB"}
	r := p.start(t)
	await(t, "collections", func() bool { return r.stops() >= 5 })
	await(t, "recording", func() bool {
		dirs, _ := filepath.Glob(filepath.Join(r.out, "*"))
		return len(dirs) == 1 && len(listings(dirs[0])) > 0
	})
	time.Sleep(time.Duration(rand.IntN(700)) * time.Millisecond)
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	pid, before := r.pid(), r.stops()
	r.cmd.Process.Wait()
	await(t, "more collections", func() bool { return r.stops() >= before+10 })
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "end of the JVM", func() bool { return ended(pid) })
	await(t, "last line of the program", func() bool { return strings.HasSuffix(r.stdout.String(), "done\n") })
	dirs, _ := filepath.Glob(filepath.Join(r.out, "*"))
	if len(dirs) != 1 {
		t.Fatalf("recordings: %v", dirs)
	}
	verify(t, dirs[0], 1)
}

// TestKillAgent kills the daemon at random moments under load and starts it again, sometimes so late that the shared
// ring overflows. The JVM does not notice, and the recording continues in its folder. Collections may be missing only
// from a time when no agent ran, or when a new agent had not yet emptied the ring. Gaps report their exact number.
func TestKillAgent(t *testing.T) {
	t.Parallel()
	needReader(t)
	versions, gcs, kills := majors()[:1], []string{"Parallel"}, 2
	if full {
		versions, gcs, kills = majors(), collectors, 20
	}
	row := killTable(t, "Killing the agent", "pair | depth | kills | without agent, s | stops that the JVM logged | "+
		"collections recorded | missing | of them recorded as gaps | of them while an agent ran | gaps | "+
		"sync points | mismatches")
	eachPair(t, versions, gcs, func(t *testing.T, major int, gc string) {
		depth := "survivors"
		if gc == "Parallel" { // overflows within a second
			depth = "full"
		}
		d := newDaemon(t, "--max-trace-size", "2GiB", "--depth", depth, "--shm-size", "4MiB", "--emergency", "off")
		d.start(t)
		file := filepath.Join(t.TempDir(), "end")
		// The rate is one that an agent keeps up with on a busy machine: what is lost is lost to the kills.
		p := program{major: major, gc: gc, heap: "64m", main: "Until", args: []string{file, "20000", "12"},
			opts: []string{d.option(t)}}
		r := p.plain(t)
		end := make(chan error, 1)
		go func() { end <- r.cmd.Wait() }()
		await(t, "recording", func() bool { return len(d.recordings()) == 1 && r.stops() >= 2 })
		var away []span
		for i := range kills {
			time.Sleep(time.Duration(200+rand.IntN(900)) * time.Millisecond)
			from, before := time.Now(), r.stops()
			d.kill()
			if i == 0 { // at least once the ring must overflow
				await(t, "collections without an agent", func() bool {
					return r.stops() >= before+2 && (depth != "full" || d.ring(t).EpochsDropped > 0)
				})
			} else {
				time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			}
			d.start(t)
			await(t, "the agent has emptied the ring", func() bool { return d.ring(t).Backlog() < 64<<10 })
			// While the probe tells its definitions anew a collection may find the ring taken; the one behind it lists
			// everything.
			n := r.stops()
			await(t, "collections with an agent", func() bool { return r.stops() >= n+2 })
			away = append(away, span{from, time.Now()})
		}
		n := r.stops()
		await(t, "collections with an agent", func() bool { return r.stops() >= n+3 })
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := <-end; err != nil || !strings.HasSuffix(r.stdout.String(), "done\n") {
			t.Fatalf("the JVM: %v", err)
		}
		if s := r.stderr.String(); strings.Contains(s, "heapcam") {
			t.Errorf("the JVM heard of it: %s", s)
		}
		await(t, "the ring is drained", func() bool { return strings.Contains(d.stderr.String(), "recording ended") })
		d.stop(t)
		dirs := d.recordings()
		if len(dirs) != 1 {
			t.Fatalf("recordings: %v", dirs)
		}
		h := readHoles(t, dirs[0])
		stops, running, alone := r.pauses(t).stops, 0, time.Duration(0)
		for _, s := range away {
			alone += s.to.Sub(s.from)
		}
		for _, hole := range h.holes {
			if hole.reported != hole.missing {
				t.Errorf("%d collections are missing before %d, gaps report %d", hole.missing, hole.before,
					hole.reported)
			}
			if !slices.ContainsFunc(away, hole.meets) {
				running += hole.missing
				t.Logf("%d collections are missing before %d, from %v to %v: an agent ran", hole.missing, hole.before,
					hole.from.Format("05.000"), hole.to.Format("05.000"))
			}
		}
		for _, s := range away {
			t.Logf("without an agent from %v to %v", s.from.Format("05.000"), s.to.Format("05.000"))
		}
		if full && running > 0 { // a starved agent may lose some in small rounds on a busy machine, if it tells
			t.Errorf("%d of %d missing collections ended while an agent ran", running, h.missing)
		}
		if h.away != kills {
			t.Errorf("%d gaps say that the recorder was away, it was killed %d times", h.away, kills)
		}
		if depth == "full" && h.missing == 0 {
			t.Error("the ring never overflowed")
		}
		if int(h.last) < stops || h.recorded+h.missing < stops {
			t.Errorf("%d collections recorded and %d missing up to %d; the JVM logged %d",
				h.recorded, h.missing, h.last, stops)
		}
		v := verify(t, dirs[0], 2)
		row(fmt.Sprintf("%s/%d", gc, major), depth, kills, fmt.Sprintf("%.1f", alone.Seconds()), stops,
			h.recorded, h.missing,
			h.reported, running, h.gaps, v.SyncPoints, v.Mismatches)
	})
}

// span is a stretch of wall clock.
type span struct{ from, to time.Time }

// clockSlack is what the clock of the JVM, reported in ms, and ours may differ by.
const clockSlack = 20 * time.Millisecond

func (s span) meets(o span) bool {
	return !s.from.After(o.to.Add(clockSlack)) && !s.to.Before(o.from.Add(-clockSlack))
}

// hole is a stretch of collections that are missing in a recording: between the end of the one before it and the start
// of the one behind.
type hole struct {
	span
	before            uint64 // the collection behind it
	missing, reported int
}

// holes is what is missing in a recording and what tells of it.
type holes struct {
	holes                             []hole
	recorded, missing, reported, gaps int
	away                              int // gaps that say that the recorder was away
	last                              uint64
}

// readHoles reads the numbers of the epochs and the gaps between them, as they stand in the files.
func readHoles(t *testing.T, dir string) (h holes) {
	t.Helper()
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for _, p := range rec.Problems {
		t.Errorf("damage: %v", p)
	}
	var t0, end time.Time
	reported := 0
	for _, f := range rec.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindMeta:
				m, err := trace.DecodeMeta(b)
				if err != nil {
					t.Fatal(err)
				}
				if m.HasJVM {
					t0 = time.UnixMilli(int64(m.JVM.T0WallMS))
				}
			case trace.KindGap:
				g, err := trace.DecodeGap(b)
				if err != nil {
					t.Fatal(err)
				}
				h.gaps++
				reported += int(g.Epochs)
				if g.Reason == trace.GapAway {
					h.away++
				}
			case trace.KindEpoch:
				e, err := trace.DecodeEpoch(b)
				if err != nil {
					t.Fatal(err)
				}
				begun := t0.Add(time.Duration(e.Pause.Start))
				n := int(e.Pause.GC) - int(h.last) - 1
				if n < 0 {
					t.Errorf("collection %d follows %d", e.Pause.GC, h.last)
				} else if n > 0 || reported > 0 {
					h.holes = append(h.holes, hole{span{end, begun}, e.Pause.GC, n, reported})
					h.missing, h.reported = h.missing+n, h.reported+reported
				}
				h.recorded++
				h.last, end, reported = e.Pause.GC, begun.Add(time.Duration(e.Pause.Dur)), 0
			}
		}
	}
	if reported > 0 { // lost at the end: no epoch has followed
		h.missing, h.reported = h.missing+reported, h.reported+reported
		h.last += uint64(reported)
	}
	return h
}

// TestLimitOnDisk asks a real disk all the time what the folder of a real JVM's recording occupies while at least five
// times the limit is written, with sync points from small to larger than a file's target.
func TestLimitOnDisk(t *testing.T) {
	t.Parallel()
	limit, heap, ds, slots := int64(1<<20), "48m", []string{"0.25"}, []string{"20000"}
	if full {
		limit, heap, ds, slots = 4<<20, "160m", []string{"0.5", "0.25", "0.1"}, []string{"500", "20000", "150000"}
	}
	row := killTable(t, "Limit on a real disk",
		"pair | M | d | T, KiB | listings, KiB | written / M | occupied / M at most | allowed")
	for _, d := range ds {
		for i, live := range slots {
			gc, major := collectors[i%len(collectors)], 17
			if i%2 == 1 {
				major = 25
			}
			t.Run(fmt.Sprintf("d=%s,%s", d, live), func(t *testing.T) {
				p := program{major: major, gc: gc, heap: heap, main: "Until", args: []string{untilKilled, live, "0"},
					limit: fmt.Sprint(limit), timeout: 120 * time.Second,
					flags: []string{"--max-trace-size-deviation", d, "--compression", "none", "--depth", "full"}}
				r := p.start(t)
				var most, written atomic.Int64
				stop, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					sizes := map[string]int64{}
					for {
						select {
						case <-stop:
							return
						default:
						}
						if now, ok := occupied(r.out, sizes, &written); ok {
							most.Store(max(most.Load(), now))
						}
						time.Sleep(200 * time.Microsecond)
					}
				}()
				for end := time.Now().Add(90 * time.Second); written.Load() < 5*limit; time.Sleep(
					10 * time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("only %d bytes were written", written.Load())
					}
				}
				syscall.Kill(r.pid(), syscall.SIGKILL)
				r.wait(t)
				close(stop)
				<-done
				var dev float64
				fmt.Sscan(d, &dev)
				if n := most.Load(); n > limit+int64(dev*float64(limit)) || n < limit/2 {
					t.Errorf("%d bytes were occupied at most; M is %d, d %s", n, limit, d)
				}
				rec := r.recorded(t)
				verify(t, rec.dir, 0)
				row(fmt.Sprintf("%s/%d", gc, major), fmt.Sprintf("%d MiB", limit>>20), d, int64(float64(limit)*dev)>>10,
					listingSizes(rec.dir), fmt.Sprintf("%.2f", float64(written.Load())/float64(limit)),
					fmt.Sprintf("%.3f", float64(most.Load())/float64(limit)), fmt.Sprintf("%.2f", 1+dev))
			})
		}
	}
}

// occupied gives what the files below dir occupy, bytes, and adds to written what they have grown by since sizes were
// reported. A look takes a while on a busy machine; one during which a file came or went counts what was never there
// together: not ok.
func occupied(dir string, sizes map[string]int64, written *atomic.Int64) (sum int64, ok bool) {
	list := func() []string {
		all, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
		return all
	}
	before := list()
	for _, path := range before {
		var st syscall.Stat_t
		if syscall.Lstat(path, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		sum += st.Blocks * 512
		if g := st.Size - sizes[path]; g > 0 {
			sizes[path] = st.Size
			written.Add(g)
		}
	}
	return sum, slices.Equal(before, list())
}
