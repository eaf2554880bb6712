package shmring_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
)

func commitNumber(t *testing.T, p *ringtest.Producer, n uint64) {
	t.Helper()
	payload := binary.LittleEndian.AppendUint64(make([]byte, 0, 64<<10), n)
	if ok, err := p.Commit(trace.Block{Kind: trace.KindEpoch, Payload: payload[:64<<10]}); err != nil || !ok {
		t.Fatalf("commit %d: %v, %v", n, ok, err)
	}
}

// drain reads until nothing comes within a moment and gives the numbers it saw.
func drain(t *testing.T, r *shmring.Ring) (seen []uint64, err error) {
	t.Helper()
	return drainFor(t, r, 300*time.Millisecond)
}

// drained is drain of a ring that has an end, which a busy machine may take long to find.
func drained(t *testing.T, r *shmring.Ring) (seen []uint64, err error) {
	t.Helper()
	return drainFor(t, r, time.Minute)
}

func drainFor(t *testing.T, r *shmring.Ring, most time.Duration) (seen []uint64, err error) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), most)
		err := r.Wait(ctx)
		cancel()
		if err != nil {
			return seen, err
		}
		b, err := r.Read(1 << 20)
		if err != nil {
			return seen, err
		}
		for blk, err := range trace.Blocks(b.Data) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, binary.LittleEndian.Uint64(blk.Payload))
		}
		if err := r.Commit(b.End); err != nil {
			return seen, err
		}
	}
}

func wantNumbers(t *testing.T, got []uint64, from, to uint64) {
	t.Helper()
	for i, n := range got {
		if n != from+uint64(i) {
			t.Fatalf("number %d is %d, want %d", i, n, from+uint64(i))
		}
	}
	if uint64(len(got)) != to-from+1 {
		t.Fatalf("%d numbers, want %d to %d", len(got), from, to)
	}
}

// TestTakeOver has a reader follow to larger rings, twice: nothing is lost or read twice, positions continue, and what
// was asked for stays asked for.
func TestTakeOver(t *testing.T) {
	p := create(t, ringtest.Config{Mapped: true})
	r := acquired(t, p)
	for n := uint64(1); n <= 5; n++ {
		commitNumber(t, p, n)
	}
	if err := r.SetDepth(trace.DepthFull); err != nil {
		t.Fatal(err)
	}
	if err := p.Grow(2<<20, true); err != nil {
		t.Fatal(err)
	}
	ticket, err := r.RequestSync() // into the ring that nobody looks at any more
	if err != nil {
		t.Fatal(err)
	}
	// The probe looks at the new ring alone, and the old one is read late where the disk hangs.
	if err := errors.Join(r.SetPause(shmring.PauseAsked), r.Detach(), r.Beat()); err != nil {
		t.Fatal(err)
	}
	if p.Peek32(shmring.OffPause) != shmring.PauseAsked || p.Peek32(shmring.OffDetach) != 1 ||
		p.Peek64(shmring.OffSyncWanted) != ticket || p.Peek32(shmring.OffDepthWanted) != trace.DepthFull ||
		shmring.Monotonic()-p.Peek64(shmring.OffAgentHeartbeat) > uint64(5*time.Second) {
		t.Error("what is asked for before the new ring is read is not in it")
	}
	for n := uint64(6); n <= 20; n++ {
		commitNumber(t, p, n)
	}
	seen, err := drain(t, r)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	wantNumbers(t, seen, 1, 20)
	s, err := r.Status()
	if err != nil || s.Capacity != 2<<20 || s.Base == 0 || s.SyncWanted != ticket ||
		s.DepthWanted != trace.DepthFull || r.Capacity() != 2<<20 {
		t.Fatalf("%v %+v", err, s)
	}
	if _, err := os.Lstat(p.Path + shmring.NextSuffix); !os.IsNotExist(err) {
		t.Errorf("the new ring has two names: %v", err)
	}
	if err := p.Grow(8<<20, true); err != nil {
		t.Fatal(err)
	}
	commitNumber(t, p, 21)
	p.Poke32(shmring.OffState, uint32(shmring.StateDetached))
	seen, err = drained(t, r)
	if !errors.Is(err, shmring.ErrEnded) {
		t.Fatal(err)
	}
	wantNumbers(t, seen, 21, 21)
	if err := r.Unlink(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(p.Path)); len(left) != 0 {
		t.Errorf("files are left: %v", left)
	}
}

// TestTakeOverLate has another agent come at each point of a take-over at which the one before, and the producer, may
// die.
func TestTakeOverLate(t *testing.T) {
	grown := func(t *testing.T, announce bool) (*ringtest.Producer, *shmring.Ring) {
		p := create(t, ringtest.Config{Mapped: true})
		r := acquired(t, p)
		commitNumber(t, p, 1)
		if _, err := drain(t, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		commitNumber(t, p, 2)
		if err := p.Grow(2<<20, announce); err != nil {
			t.Fatal(err)
		}
		commitNumber(t, p, 3)
		r.Close()
		return p, r
	}
	again := func(t *testing.T, path string) *shmring.Ring {
		r, err := shmring.Open(path, shmring.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		if fresh, err := r.Acquire(); err != nil || fresh {
			t.Fatalf("acquire: fresh %v, %v", fresh, err)
		}
		return r
	}
	t.Run("before it", func(t *testing.T) {
		p, _ := grown(t, true)
		r := again(t, p.Path)
		seen, err := drain(t, r)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wantNumbers(t, seen, 2, 3)
		if s, err := r.Status(); err != nil || s.Redefine == s.RedefineDone {
			t.Errorf("the new ring is not asked for definitions: %v %+v", err, s)
		}
	})
	t.Run("the old one removed", func(t *testing.T) {
		p, _ := grown(t, true)
		os.Remove(p.Path)
		paths, err := shmring.Scan(filepath.Dir(p.Path))
		if err != nil || len(paths) != 1 || paths[0] != p.Path {
			t.Fatalf("%v %v", paths, err)
		}
		r := again(t, p.Path)
		seen, err := drain(t, r)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wantNumbers(t, seen, 3, 3)
	})
	t.Run("producer dead before it could say so", func(t *testing.T) {
		p := create(t, ringtest.Config{PID: 1 << 22, StartTicks: 1}) // nobody's
		r := acquired(t, p)
		commitNumber(t, p, 1)
		if err := p.Grow(2<<20, false); err != nil {
			t.Fatal(err)
		}
		commitNumber(t, p, 2)
		p.Close()
		seen, err := drained(t, r)
		if !errors.Is(err, shmring.ErrGone) {
			t.Fatal(err)
		}
		wantNumbers(t, seen, 1, 2)
	})
	for name, spoil := range map[string]func(p *ringtest.Producer){
		"no new ring":        func(p *ringtest.Producer) { os.Remove(p.Path + shmring.NextSuffix) },
		"unfinished":         func(p *ringtest.Producer) { p.Poke64(shmring.OffMagic, 0) },
		"of another session": func(p *ringtest.Producer) { p.Poke64(shmring.OffSession, 0x3030303030303030) },
		"with a gap":         func(p *ringtest.Producer) { p.Poke64(shmring.OffBase, 8); p.Poke64(shmring.OffTail, 8) },
		"a link": func(p *ringtest.Producer) {
			os.Remove(p.Path + shmring.NextSuffix)
			os.Symlink(p.Path, p.Path+shmring.NextSuffix)
		},
		"truncated": func(p *ringtest.Producer) { p.Truncate(5000) },
	} {
		t.Run(name, func(t *testing.T) {
			p := create(t, ringtest.Config{Mapped: true})
			r := acquired(t, p)
			commitNumber(t, p, 1)
			if err := p.Grow(2<<20, true); err != nil {
				t.Fatal(err)
			}
			spoil(p)
			seen, err := drained(t, r)
			quarantined(t, err)
			wantNumbers(t, seen, 1, 1)
		})
	}
}

// TestTakeOverOfRemoved: the ring's file is removed, and a scan gives its name to the ring that takes over, while the
// reader still reads the removed one. Even where the producer has made a third ring by then, no ring is left out.
func TestTakeOverOfRemoved(t *testing.T) {
	for _, third := range []bool{false, true} {
		p := create(t, ringtest.Config{Mapped: true})
		r := acquired(t, p)
		commitNumber(t, p, 1)
		check(t, os.Remove(p.Path))
		check(t, p.Grow(2<<20, true))
		commitNumber(t, p, 2)
		if paths, err := shmring.Scan(filepath.Dir(p.Path)); err != nil || len(paths) != 1 || paths[0] != r.Path() {
			t.Fatalf("%v %v", paths, err)
		}
		last := uint64(2)
		if third {
			p.Path = r.Path()
			check(t, p.Grow(4<<20, true))
			commitNumber(t, p, 3)
			last = 3
		}
		seen, err := drain(t, r)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		wantNumbers(t, seen, 1, last)
		if left, err := os.ReadDir(filepath.Dir(r.Path())); err != nil || len(left) != 1 {
			t.Errorf("third ring %v: %v in the folder, %v", third, left, err)
		}
	}
}

// TestOldABI reads a ring as probes of ABI 1 made them: its header has 4,096 bytes.
func TestOldABI(t *testing.T) {
	p := create(t, ringtest.Config{ABI: 1, Mapped: true})
	r := acquired(t, p)
	for n := uint64(1); n <= 12; n++ {
		commitNumber(t, p, n)
	}
	seen, err := drain(t, r)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	wantNumbers(t, seen, 1, 12)
	for n := uint64(13); n <= 24; n++ { // wraps
		commitNumber(t, p, n)
	}
	seen, _ = drain(t, r)
	wantNumbers(t, seen, 13, 24)
}
