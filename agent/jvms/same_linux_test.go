package jvms

import (
	"os"
	"testing"

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
		if _, same := w.same(p.PID); same != x.same {
			t.Errorf("%s: the same: %v", x.exe, same)
		}
	}
	delete(w.known, id)
	if _, same := w.same(p.PID); same {
		t.Error("nothing is known")
	}
}
