package ringstore_test

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/ringstore"
)

// framesOf gives the numbers of the frames of an incident, whose files are closed.
func framesOf(rt *rapid.T, fs ringstore.FS, path string) (got []uint64) {
	es, err := fs.ReadDir(path)
	if err != nil {
		rt.Fatal(err)
	}
	for _, e := range es {
		if e.Name == "incident.json" || e.Name == "recording.json" {
			continue
		}
		f, err := ringstore.OpenFileIn(fs, path+"/"+e.Name)
		if err != nil {
			rt.Fatal(err)
		}
		if !f.Window().Closed {
			rt.Fatalf("%s is not closed", e.Name)
		}
		for fr, err := range f.Frames() {
			if err != nil {
				rt.Fatal(err)
			}
			k := binary.LittleEndian.Uint64(fr.Payload)
			if string(fr.Payload) != string(frame(k, len(fr.Payload))) {
				rt.Fatalf("frame %d is not what was written", k)
			}
			got = append(got, k)
		}
		f.Close()
	}
	return got
}

// hole gives an accepted frame between the first and the last of got that is not among them.
func (p *play) hole(got []uint64) (missing uint64, is bool) {
	for k := 1; k < len(got); k++ {
		for x := got[k-1] + 1; x < got[k]; x++ {
			if _, ok := p.accepted[x]; ok {
				return x, true
			}
		}
	}
	return 0, false
}

// TestIncidentModel freezes while a ring continues, files go and operations fail: an incident is what was accepted,
// whole and without a hole, from some frame to the newest; it stays what it was; all of them stay below their limit;
// what was not finished is cleared.
func TestIncidentModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<19).Draw(rt, "M")
		frameMax := rapid.IntRange(1, 30000).Draw(rt, "frame")
		rate := rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "faults in 100")
		p := newPlay(m, rapid.Float64Range(0.05, 0.5).Draw(rt, "d"), rapid.Uint64().Draw(rt, "seed"))
		p.limit = 1 << 40 // the ring's own limit is TestModel's
		ring := m + int64(float64(m)*p.cfg.Deviation)
		n := &ringstore.Incidents{Dir: "/rings/incidents", Max: rapid.Int64Range(1<<16, 4*m).Draw(rt, "max"),
			Every: time.Minute, FS: p.fs, Now: func() time.Time { return p.now }}
		if err := p.open(); err != nil {
			rt.Fatal(err)
		}
		faults := false
		p.fs.Fail = func(op, path string) error {
			if faults && op != "read" && op != "readdir" && op != "openread" && p.r.IntN(100) < rate {
				return kinds[p.r.IntN(len(kinds))]
			}
			return nil
		}
		contents := func(id string) []uint64 { return framesOf(rt, p.fs, n.Path(id)) }
		was := map[string][]uint64{}
		last := time.Time{}
		for range 40 {
			p.now = p.now.Add(time.Duration(p.r.IntN(20)) * time.Second)
			switch p.r.IntN(8) {
			case 0:
				cause := ringstore.CauseAsked
				auto := p.r.IntN(2) == 0
				if auto {
					cause = ringstore.CauseStorm
				}
				faults = rate > 0
				i, err := n.Freeze(dir, cause, "test")
				faults = false
				switch {
				case errors.Is(err, ringstore.ErrTooOften):
					if !auto || p.now.Sub(last) >= time.Minute {
						rt.Fatalf("%v after %v", err, p.now.Sub(last))
					}
					continue
				case errors.Is(err, ringstore.ErrIncidentRoom):
					if n.Max > 4*ring {
						rt.Fatal(err)
					}
				case err != nil:
					if rate == 0 && p.newest > 0 {
						rt.Fatal(err)
					}
					// It may be there all the same, whole, if what was made could not be removed either.
					if auto {
						last = p.now
					}
					all, _ := n.List()
					for _, i := range all {
						if was[i.ID] == nil {
							was[i.ID] = contents(i.ID)
						}
					}
				default:
					if auto {
						last = p.now
					}
					got := contents(i.ID)
					if len(got) == 0 || got[len(got)-1] != p.newest && !i.Full {
						rt.Fatalf("the newest is %v, %d was accepted: %+v", got, p.newest, i)
					}
					if x, is := p.hole(got); is {
						rt.Fatalf("frame %d is missing", x)
					}
					was[i.ID] = got
				}
			case 1:
				all, err := n.List()
				if err != nil {
					rt.Fatal(err)
				}
				if len(all) > 0 && p.r.IntN(3) == 0 {
					if err := n.Delete(all[p.r.IntN(len(all))].ID); err != nil {
						rt.Fatal(err)
					}
				}
				if p.r.IntN(3) == 0 {
					p.now = p.now.Add(2 * time.Hour)
				} else {
					break
				}
				if err := n.Clean(); err != nil {
					rt.Fatal(err)
				}
				left, _ := p.fs.ReadDir(n.Dir)
				if all, _ = n.List(); len(left) != len(all) {
					rt.Fatalf("%d folders, %d incidents", len(left), len(all))
				}
				for _, i := range all {
					if got := contents(i.ID); len(got) != len(was[i.ID]) || got[0] != was[i.ID][0] {
						rt.Fatalf("incident %s has changed: %v, was %v", i.ID, got, was[i.ID])
					}
				}
			default:
				for range p.r.IntN(10) {
					st := p.s.Stats()
					p.put(st.Rotate || st.Files == 0, 1+p.r.IntN(frameMax))
				}
			}
			if size := p.fs.Below(n.Dir); size > n.Max {
				rt.Fatalf("incidents occupy %d, at most %d", size, n.Max)
			}
			if size := p.fs.Below(dir); size > ring {
				rt.Fatalf("the ring occupies %d, at most %d", size, ring)
			}
		}
	})
}

// TestIncidentOnFullDisk freezes where nothing more can be written: the closed files are kept, as links, and the open
// one is named as left out; where there are only open ones, or not even a small file can be written, nothing is kept
// and the error says that the disk is full.
func TestIncidentOnFullDisk(t *testing.T) {
	for _, c := range []struct {
		name        string
		frames      int
		small, full bool // small files can be written; the freeze gives an error
	}{{"links", 60, true, false}, {"only an open file", 1, true, true}, {"no small file", 60, false, true}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlay(1<<18, 0.25, 1)
			p.limit = 1 << 40
			if err := p.open(); err != nil {
				t.Fatal(err)
			}
			for i := range c.frames { // a file takes some of them
				if err := p.put(i%20 == 0, 2000); err != nil {
					t.Fatal(err)
				}
			}
			n := &ringstore.Incidents{Dir: "/rings/incidents", Max: 1 << 30, FS: p.fs}
			p.fs.Fail = func(op, path string) error {
				if op == "write" || op == "allocate" || op == "writefile" && !c.small {
					return syscall.ENOSPC
				}
				return nil
			}
			i, err := n.Freeze(dir, ringstore.CauseAsked, "test")
			p.fs.Fail = nil
			if c.full {
				if !ringstore.DiskFull(err) {
					t.Fatalf("%+v, %v", i, err)
				}
				if all, _ := n.List(); len(all) != 0 {
					t.Fatalf("kept: %+v", all)
				}
				return
			}
			if err != nil || !i.Full || len(i.Left) != 1 || i.Files == 0 {
				t.Fatalf("%+v, %v", i, err)
			}
			es, err := p.fs.ReadDir(n.Path(i.ID))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				if e.Name == i.Left[0] {
					t.Errorf("%s was left out, and is there", e.Name)
				}
			}
		})
	}
}

// TestIncidentCauses: which incident prevents another one is a matter of their causes, whatever their reasons say.
func TestIncidentCauses(t *testing.T) {
	const asked, storm, exhausted, unended = ringstore.CauseAsked, ringstore.CauseStorm, ringstore.CauseExhausted,
		ringstore.CauseUnended
	for _, c := range []struct {
		before, then ringstore.Cause
		made         bool
	}{
		{storm, storm, false}, {storm, exhausted, true}, {storm, unended, true}, {storm, asked, true},
		{exhausted, exhausted, false}, {exhausted, storm, false}, {exhausted, unended, true}, {asked, storm, true},
		{unended, unended, true},
	} {
		p := newPlay(1<<19, 0.2, 1)
		if err := errors.Join(p.open(), p.put(true, 5000)); err != nil {
			t.Fatal(err)
		}
		n := &ringstore.Incidents{Dir: "/rings/incidents", Max: 1 << 30, Every: time.Minute, FS: p.fs}
		if _, err := n.Freeze(dir, c.before, "one"); err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"one", "another"} {
			i, err := n.Freeze(dir, c.then, reason)
			if made := err == nil; made != c.made || !made && !errors.Is(err, ringstore.ErrTooOften) {
				t.Errorf("%s after %s, %q: %v", c.then, c.before, reason, err)
			}
			if err != nil {
				continue
			}
			if got, err := n.Find(i.ID); err != nil || got.Cause != c.then || got.Auto != (c.then != asked) ||
				got.Ended != (c.then == unended) {
				t.Errorf("%+v, %v", got, err)
			}
			if err := n.Delete(i.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}
