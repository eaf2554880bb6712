package jvms

import (
	"os"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/procfs"
)

// TestSame: a JVM that is known is not inspected again, unless its process runs another program by now.
func TestSame(t *testing.T) {
	p, err := procfs.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	id := ID(p.PID, p.StartTicks)
	w := watcher{known: map[string]JVM{}}
	for _, x := range []struct {
		exe  string
		same bool
	}{{p.Link("exe"), true}, {"/bin/java", false}} {
		w.known[id] = JVM{ID: id, exe: x.exe}
		if _, err := w.look(p.PID, time.Now(), map[string]other{}); (err == nil) != x.same {
			t.Errorf("%s: the same: %v", x.exe, err)
		}
	}
	delete(w.known, id)
	if _, err := w.look(p.PID, time.Now(), map[string]other{}); err == nil {
		t.Error("nothing is known")
	}
}

// TestOthers: a process that is no JVM is looked at by each rescan for a minute, then once a minute, and at once if it
// runs another program or PerfData has appeared.
func TestOthers(t *testing.T) {
	p, err := procfs.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	id, exe, now := ID(p.PID, p.StartTicks), p.Link("exe"), time.Now()
	for _, x := range []struct {
		name   string
		was    other
		soon   bool
		looked bool
	}{
		{"new", other{}, false, true},
		{"half a minute old", other{exe, now.Add(-30 * time.Second), time.Time{}}, false, true},
		{"old, never looked at since", other{exe, now.Add(-time.Hour), time.Time{}}, false, true},
		{"old, looked at", other{exe, now.Add(-time.Hour), now.Add(time.Second)}, false, false},
		{"old, a minute ago", other{exe, now.Add(-time.Hour), now}, false, true},
		{"another program", other{"/bin/sh", now.Add(-time.Hour), now.Add(time.Second)}, false, true},
		{"an event", other{exe, now.Add(-time.Hour), now.Add(time.Second)}, true, true},
	} {
		w := watcher{soon: x.soon, others: map[string]other{}}
		if x.was.exe != "" {
			w.others[id] = x.was
		}
		after := map[string]other{}
		if _, err := w.look(p.PID, now, after); err == nil {
			t.Fatal("this is a JVM")
		}
		is, ok := after[id]
		looked := is.again != x.was.again || is.since == now || now.Sub(is.since) < oftenFor
		if !ok || looked != x.looked {
			t.Errorf("%s: %+v, then %+v", x.name, x.was, is)
		}
	}
}
