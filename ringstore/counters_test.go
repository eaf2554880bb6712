package ringstore_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
)

// TestCounters: what a recorder counts is there for the next one, of this recording only, whether it was synced by
// the way or at the end.
func TestCounters(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	id := ringstore.Identity{Session: session, Name: "x", PID: 1}
	open := func() *ringstore.Store {
		t.Helper()
		s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 20}, id)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if s.Counters() != nil {
		t.Errorf("counters of nobody: %s", s.Counters())
	}
	for _, bad := range []string{"", "{", `"` + strings.Repeat("x", 3000) + `"`} {
		if s.KeepCounters([]byte(bad)) == nil {
			t.Errorf("%d bytes were taken", len(bad))
		}
	}
	if err := s.Rotate(frame(1, 100), ringstore.FrameInfo{Source: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.KeepCounters([]byte(`{"a": 1}`)); err != nil {
		t.Fatal(err)
	}
	s.SyncSoon()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	if c := string(s.Counters()); !strings.Contains(c, `"a": 1`) {
		t.Errorf("counters %q", c)
	}
	s.KeepCounters([]byte(`{"a": 2}`))
	s.Close()
	s = open()
	if c := string(s.Counters()); !strings.Contains(c, `"a": 2`) {
		t.Errorf("counters %q", c)
	}
	s.Close()
}

// TestSyncAlwaysFails: a disk that takes everything and keeps to say that it did not must not fill the ring with the
// heads of files.
func TestSyncAlwaysFails(t *testing.T) {
	p := newPlay(1<<20, 0.25, 1)
	if err := p.open(); err != nil {
		t.Fatal(err)
	}
	p.fs.Fail = func(op, _ string) error {
		if op == "sync" {
			return syscall.EIO
		}
		return nil
	}
	const head, frames = 20000, 500
	heads, refused := 0, 0
	for i := range frames {
		p.now = p.now.Add(time.Second)
		rotate := i == 0 || p.s.Stats().Rotate
		size := 2000
		if rotate {
			size = head
			heads++
		}
		if p.put(rotate, size) != nil {
			refused++
		}
		if p.s.Sync() == nil {
			t.Fatal("a sync worked")
		}
	}
	if refused > 0 || heads < 5 || 10*heads*head > 3*(heads*head+(frames-heads)*2000) {
		t.Errorf("%d heads of %d bytes, %d of %d frames refused", heads, head, refused, frames)
	}
}
