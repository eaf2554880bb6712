//go:build unix

package quota

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore"
)

// onDisk is what all below dir occupies, as the system says, each file once.
func onDisk(dir string) (n int64) {
	seen := map[uint64]bool{}
	filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err == nil && p != dir {
			s := st.Sys().(*syscall.Stat_t)
			if !seen[s.Ino] {
				seen[s.Ino] = true
				n += s.Blocks * 512
			}
		}
		return nil
	})
	return n
}

// testConfig shares max among rings of max_trace_size m below out.
func testConfig(out string, m, max int64) DiskConfig {
	return DiskConfig{Out: out, Max: max, Ring: RingLimit(m, 0.25)}
}

// TestTotal lets JVMs come, record, freeze and end: all that they leave never occupies more than max_total_size,
// each gets an equal part in the end, ended ones go oldest first and only when need be, and nobody is refused while
// there is room for the smallest ring.
func TestTotal(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		out, err := os.MkdirTemp(base, "t")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(out)
		cfg := testConfig(out, 3<<20, rapid.Int64Range(2<<20, 16<<20).Draw(rt, "total"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		frozen := rapid.Bool().Draw(rt, "freezes")
		g := NewDisk(cfg)
		now := time.Now()
		g.now = func() time.Time { return now }
		stores := map[string]*ringstore.Store{}
		defer func() {
			for _, s := range stores {
				s.Close()
			}
		}()
		check := func(what string) {
			if n := onDisk(out); n > cfg.Max {
				rt.Fatalf("%s: %d bytes are occupied, at most %d", what, n, cfg.Max)
			}
		}
		limits := map[string]int64{}
		write := func(dir string) {
			s := stores[dir]
			l := g.Share(dir, s.Stats().Bytes)
			limits[dir] = l
			if err := s.Resize(TraceSize(l, 3<<20, 0.25)); err != nil {
				rt.Fatal(err)
			}
			for range r.IntN(10) {
				b := make([]byte, 1+r.IntN(60000))
				var err error
				if st := s.Stats(); st.Rotate {
					err = s.Rotate(b, ringstore.FrameInfo{Source: 1})
				} else {
					err = s.Append(b, ringstore.FrameInfo{Source: 1})
				}
				if err != nil && !errors.Is(err, ringstore.ErrNoRoom) {
					rt.Fatal(err)
				}
			}
			check("write")
		}
		n := 0
		for range 25 {
			now = now.Add(2 * time.Second)
			switch k := r.IntN(10); {
			case k == 0 && len(stores) < 6:
				n++
				dir := filepath.Join(out, fmt.Sprintf("jvm-%d-x", n))
				l, err := g.Admit(dir)
				if err != nil {
					if g.free() >= minShare {
						rt.Fatalf("refused, and %d bytes are free", g.free())
					}
					continue
				}
				c := ringstore.Config{Dir: dir, MaxTraceSize: TraceSize(l, 3<<20, 0.25), Deviation: 0.25,
					Compression: "none"}
				s, _, err := ringstore.Open(c, ringstore.Identity{Session: fmt.Sprintf("%032x", n), Name: "jvm"})
				if err != nil {
					rt.Fatal(err)
				}
				stores[dir] = s
				check("open")
			case k == 1 && len(stores) > 0:
				for dir, s := range stores {
					s.Close()
					delete(stores, dir)
					delete(limits, dir)
					g.Leave(dir)
					os.Chtimes(dir, now, now)
					break
				}
			case k == 2 && frozen && len(stores) > 0:
				for dir := range stores {
					inc := ringstore.Incidents{Dir: filepath.Join(out, IncidentsName), Max: g.ForIncidents(1 << 40)}
					if _, err := inc.Freeze(dir, ringstore.CauseStorm, "test"); err != nil &&
						!errors.Is(err, ringstore.ErrIncidentRoom) && !errors.Is(err, os.ErrNotExist) {
						rt.Fatal(err)
					}
					g.Recount()
					check("freeze")
					break
				}
			default:
				for dir := range stores {
					write(dir)
				}
			}
		}
		for range 12 { // settles
			now = now.Add(11 * time.Second)
			for dir := range stores {
				write(dir)
			}
		}
		var least, most int64 = 1 << 60, 0
		for _, l := range limits {
			least, most = min(least, l), max(most, l)
		}
		if len(limits) > 1 && most-least > most/4 {
			rt.Fatalf("unequal parts: %v", limits)
		}
	})
}

// TestEndedRings: what has ended goes oldest first, when space is needed or after retain_ended, and never while
// somebody uses it.
func TestEndedRings(t *testing.T) {
	out := t.TempDir()
	cfg := testConfig(out, 1<<20, 5<<20)
	g := NewDisk(cfg)
	var dirs []string
	var busy *ringstore.Store
	for i := range 3 {
		dir := filepath.Join(out, fmt.Sprintf("jvm-%d-x", i))
		dirs = append(dirs, dir)
		s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 20, Compression: "none"},
			ringstore.Identity{Session: fmt.Sprintf("%032x", i), Name: "jvm"})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Rotate(make([]byte, 900_000), ringstore.FrameInfo{Source: 1}); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if i == 0 {
			busy = s // recorded by somebody else
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, "00000001.hcr"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	defer busy.Close()
	there := func() (s string) {
		for i, d := range dirs {
			if _, err := os.Stat(d); err == nil {
				s += fmt.Sprint(i)
			}
		}
		return s
	}
	if _, err := g.Admit(filepath.Join(out, "new-1-x")); err != nil || there() != "012" {
		t.Errorf("%v, there are %s", err, there())
	}
	second := filepath.Join(out, "new-2-x")
	if _, err := g.Admit(second); err != nil || there() != "012" {
		t.Errorf("%v, there are %s: what is free is enough to begin with", err, there())
	}
	if l := g.Share(second, 100_000); l < minShare || there() != "012" {
		t.Errorf("limit %d, there are %s: a small ring needs no more", l, there())
	}
	if l := g.Share(second, 1<<20); l != cfg.Ring || there() != "02" {
		t.Errorf("limit %d, there are %s: a ring that grows needs the space", l, there())
	}
	g.retain = 30 * time.Hour
	g.survey(true)
	for _, d := range dirs { // for a ring this is what a clock is that is set two days forward
		at := time.Now().Add(-48 * time.Hour)
		if err := os.Chtimes(filepath.Join(d, "00000001.hcr"), at, at); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if g.survey(true); there() != "02" {
		t.Errorf("after the clock was set forward there are %s", there())
	}
	g.retain = 30 * time.Minute
	g.survey(true)
	if there() != "0" {
		t.Errorf("after retain_ended there are %s", there())
	}
}

// TestForeignInEndedRing: the ring of an ended JVM goes and a file of another recording in its folder stays, and
// counts as nobody's ring.
func TestForeignInEndedRing(t *testing.T) {
	cfg := testConfig(t.TempDir(), 3<<20, 4<<20)
	open := func(dir, session, name string) (*ringstore.Store, error) {
		st, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 3 << 20, Compression: "none"},
			ringstore.Identity{Session: session, Name: name, PID: 1})
		return st, err
	}
	make := func(name, session string) string {
		dir := filepath.Join(cfg.Out, name)
		st, err := open(dir, session, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Rotate([]byte("x"), ringstore.FrameInfo{Source: 1}); err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	a, b := make("a", strings.Repeat("ab", 16)), make("b", strings.Repeat("cd", 16))
	alien := filepath.Join(a, "00000007.hcr")
	if err := os.Rename(filepath.Join(b, "00000001.hcr"), alien); err != nil {
		t.Fatal(err)
	}
	st, err := open(a, strings.Repeat("ab", 16), "a")
	if err != nil {
		t.Fatal(err)
	}
	if s := st.Stats(); s.Foreign != 1 || s.Files != 1 {
		t.Errorf("%+v", s)
	}
	st.Close()
	g := NewDisk(cfg)
	g.survey(true)
	if len(g.ended) != 1 || !g.dropOldest() || g.dropOldest() {
		t.Errorf("%+v", g.ended)
	}
	g.survey(true)
	if len(g.ended) != 0 || g.endedSize() != 0 {
		t.Errorf("what is left counts as a ring: %+v", g.ended)
	}
	if _, err := os.Stat(alien); err != nil {
		t.Error(err)
	}
	if own, _ := filepath.Glob(filepath.Join(a, "*.hcr")); len(own) != 1 {
		t.Error(own)
	}
}

// TestTakeKeepsTheTotal: recordings that are dropped into the spool folder never exceed max_total_size. Ended rings
// make room for them, living ones do not, and a recording without room is not taken.
func TestTakeKeepsTheTotal(t *testing.T) {
	out := t.TempDir()
	tot := NewDisk(testConfig(out, 2<<20, 10<<20))
	old := filepath.Join(out, "old-1-x")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(old, "00000001.hcr"), make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	living := filepath.Join(out, "living-2-x")
	if g, err := tot.Admit(living); err != nil || g != 5<<19 {
		t.Fatal(g, err)
	}
	if tot.Reserve(8 << 20) {
		t.Error("what a living ring was granted is taken")
	}
	if _, err := os.Stat(old); err != nil {
		t.Error("an ended ring was removed in vain")
	}
	if !tot.Reserve(5<<20) || tot.free() < 0 {
		t.Errorf("an ended ring makes no room: %d are free", tot.free())
	}
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there")
	}
	if g := tot.Share(living, 1<<20); g > 5<<19 {
		t.Errorf("a ring may take %d beside what is being taken", g)
	}
	tot.Unreserve()
}

// TestSmallRingKeepsEnded: a JVM whose ring is small removes no recording of ended JVMs, though all of them and the
// largest ring would exceed the total.
func TestSmallRingKeepsEnded(t *testing.T) {
	out := t.TempDir()
	for i := range 5 {
		dir := filepath.Join(out, fmt.Sprintf("jvm-%d-x", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "00000001.hcr"), make([]byte, 40<<10), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := NewDisk(testConfig(out, 1<<30, 20<<20))
	dir := filepath.Join(out, "new-1-x")
	l, err := g.Admit(dir)
	for range 10 {
		l = min(l, g.Share(dir, 29<<10))
	}
	if left, _ := filepath.Glob(filepath.Join(out, "jvm-*")); err != nil || len(left) != 5 || l < 19<<20 {
		t.Errorf("%v, limit %d, left: %v", err, l, left)
	}
}
