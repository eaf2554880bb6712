package ringstore_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
)

// TestEveryOperation fails the n-th operation of the file system for every n, once and from then on, while a store is
// opened, filled, synced, frozen, closed and opened again: the limit holds, what was accepted is there, and once
// nothing fails any more the store works.
func TestEveryOperation(t *testing.T) {
	for i, kind := range []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS} {
		skip := 1
		if os.Getenv("HEAPCAM_FULL") == "" { // the store tells ENOSPC apart, and nothing else
			skip = 2 + 4*i
		}
		for _, forever := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/forever=%v", kind, forever), func(t *testing.T) {
				for n := 1; ; n += skip {
					if !everyOperation(t, kind, n, forever) {
						t.Logf("%d operations", n-1)
						break
					}
				}
			})
		}
	}
}

// everyOperation says whether there was an n-th operation.
func everyOperation(t *testing.T, kind error, n int, forever bool) bool {
	p := newPlay(1<<18, 0.25, 1)
	p.limit = 1 << 40
	inc := &ringstore.Incidents{Dir: "/rings/incidents", Max: 1 << 20, FS: p.fs, Now: func() time.Time { return p.now }}
	count, failing := 0, true
	p.fs.Fail = func(op, path string) error {
		switch op {
		case "read", "readdir", "openread": // what is there can be read
			return nil
		}
		count++
		if failing && (count == n || forever && count > n) {
			return kind
		}
		return nil
	}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("operation %d: "+format, append([]any{n}, args...)...)
	}
	step := func(head bool, size int) {
		p.now = p.now.Add(400 * time.Millisecond)
		if p.s == nil && p.open() != nil {
			return
		}
		st := p.s.Stats()
		p.put(head || st.Rotate, size)
		if p.s.Stats().Files == 0 {
			p.newest = 0
		}
	}
	for i := range 45 {
		step(i == 0 || i == 7, 3000+i*300)
		switch {
		case i == 12 && p.s != nil:
			p.s.Sync()
		case i == 15:
			inc.Freeze(dir, ringstore.CauseAsked, "test")
		case i == 20 && p.s != nil: // killed
			p.fs.Kill()
			p.s = nil
		case i == 30 && p.s != nil:
			if err := p.s.Close(); err != nil && p.fs.Fail == nil {
				fail("close: %v", err)
			}
			p.s = nil
		}
		if got, limit := p.fs.Below(dir), int64(1<<18+1<<16); got > limit {
			fail("%d bytes are occupied, the limit is %d", got, limit)
		}
	}
	if p.s != nil || len(p.accepted) > 0 {
		if err := p.check(p.newest); err != nil {
			fail("%v", err)
		}
	}
	failing = false
	p.now = p.now.Add(time.Minute)
	if p.s == nil {
		if err := p.open(); err != nil {
			fail("nothing fails any more: %v", err)
		}
	}
	for range 10 {
		p.now = p.now.Add(time.Second)
		st := p.s.Stats()
		if err := p.put(st.Rotate || st.Files == 0, 5000); err != nil && !errors.Is(err, ringstore.ErrNoRoom) {
			fail("nothing fails any more: %v", err)
		}
	}
	if err := p.put(true, 5000); err != nil {
		fail("nothing fails any more: %v", err)
	}
	if err := p.s.Close(); err != nil {
		fail("close: %v", err)
	}
	if err := p.check(p.newest); err != nil {
		fail("%v", err)
	}
	p.now = p.now.Add(2 * time.Hour)
	if err := inc.Clean(); err != nil {
		fail("%v", err)
	}
	if _, err := inc.Freeze(dir, ringstore.CauseAsked, "again"); err != nil {
		fail("%v", err)
	}
	if err := p.open(); err != nil { // cuts what is still torn
		fail("%v", err)
	}
	if err := p.whole(); err != nil {
		fail("torn or corrupt at the end: %v", err)
	}
	return count >= n
}
