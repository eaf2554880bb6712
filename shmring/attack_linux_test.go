package shmring_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
)

// victim is a user who owns nothing else here.
const victim = 61002

func asRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// look is all of a file that somebody who follows, links, renames, opens or writes would change.
func look(t testing.TB, path string) (s unix.Stat_t, content string) {
	t.Helper()
	check(t, unix.Lstat(path, &s))
	if s.Mode&unix.S_IFMT == unix.S_IFREG {
		f, err := os.Open(path)
		check(t, err)
		b, err := io.ReadAll(io.LimitReader(f, 1<<20))
		check(t, errors.Join(err, f.Close()))
		content = string(b)
	}
	s.Atim = unix.Timespec{}
	return s, content
}

// TestTakeOverTraps puts something else in the place of the ring that takes over: the reader leaves its ring, and
// touches nothing of what lies there.
func TestTakeOverTraps(t *testing.T) {
	asRoot(t)
	for name, set := range map[string]func(p, other *ringtest.Producer, next string) error{
		"fifo":   func(_, _ *ringtest.Producer, next string) error { return unix.Mkfifo(next, 0o666) },
		"folder": func(_, _ *ringtest.Producer, next string) error { return os.Mkdir(next, 0o777) },
		"device": func(_, _ *ringtest.Producer,
			next string) error {
			return unix.Mknod(next, unix.S_IFCHR|0o666, 1<<8|5)
		},
		"link":              func(_, o *ringtest.Producer, next string) error { return os.Symlink(o.Path, next) },
		"hard link":         func(_, o *ringtest.Producer, next string) error { return os.Link(o.Path, next) },
		"hard link to self": func(p, _ *ringtest.Producer, next string) error { return os.Link(p.Path, next) },
		"of another user": func(p, _ *ringtest.Producer, next string) error {
			return errors.Join(p.Grow(2<<20, true), os.Chown(next, victim, victim))
		},
		"of another process": func(p, _ *ringtest.Producer, next string) error {
			return errors.Join(p.Grow(2<<20, true), p.Poke32(shmring.OffPID, 1), p.Poke64(shmring.OffStartTicks, 1))
		},
		"of another namespace": func(p, _ *ringtest.Producer, next string) error {
			return errors.Join(p.Grow(2<<20, true), p.Poke64(shmring.OffPIDNS, 7))
		},
		"of a gap before 2^64": func(p, _ *ringtest.Producer, next string) error {
			return errors.Join(p.Grow(2<<20, true), p.Poke64(shmring.OffBase, ^uint64(7)),
				p.Poke64(shmring.OffTail, ^uint64(7)), p.Poke64(shmring.OffHead, ^uint64(7)))
		},
		"too large": func(p, _ *ringtest.Producer, next string) error {
			return errors.Join(p.Grow(2<<20, true), p.Poke64(shmring.OffCapacity, 1<<40), p.Truncate(1<<41))
		},
		"empty": func(_, _ *ringtest.Producer, next string) error { return os.WriteFile(next, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			p := create(t, ringtest.Config{Mapped: true})
			other := create(t, ringtest.Config{Session: p.Session, PID: 5, StartTicks: 5})
			check(t, os.Chown(other.Path, victim, victim))
			r := acquired(t, p)
			commitNumber(t, p, 1)
			next := p.Path + shmring.NextSuffix
			check(t, set(p, other, next))
			if p.Capacity() == shmring.MinCapacity {
				check(t, p.Poke32(shmring.OffState, uint32(shmring.StateMoved)))
			}
			was, content := look(t, next)
			otherWas, otherContent := look(t, other.Path)
			seen, err := drain(t, r)
			quarantined(t, err)
			wantNumbers(t, seen, 1, 1)
			check(t, errors.Join(r.Unlink(), r.Close()))
			if is, now := look(t, next); name != "hard link to self" && (is != was || now != content) {
				t.Errorf("what lies there was touched:\n%+v\n%+v", was, is)
			}
			if is, now := look(t, other.Path); is != otherWas || now != otherContent {
				t.Errorf("the other's ring was touched:\n%+v\n%+v", otherWas, is)
			}
		})
	}
}

// TestTakeOverRace replaces, truncates, removes and renames the ring that takes over as fast as it can while readers
// follow: each ends at a violation or continues, none writes to, renames or removes the file of another user that is
// put there, and none hangs.
func TestTakeOverRace(t *testing.T) {
	asRoot(t)
	rounds := 60
	if os.Getenv("HEAPCAM_FULL") != "" {
		rounds = 3000
	}
	moved := 0
	for i := range rounds {
		p := create(t, ringtest.Config{Mapped: true})
		other := create(t, ringtest.Config{Session: p.Session, PID: p.PID(),
			StartTicks: ringtest.StartTicks(os.Getpid())})
		check(t, os.Chown(other.Path, victim, victim))
		was, content := look(t, other.Path)
		r := acquired(t, p)
		commitNumber(t, p, 1)
		check(t, p.Grow(2<<20, true))
		next := p.Path + shmring.NextSuffix
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			aside := next + ".aside"
			for !stop.Load() {
				switch i % 4 {
				case 0: // another's ring, by a hard link
					os.Rename(next, aside)
					os.Link(other.Path, next)
					os.Remove(next)
					os.Rename(aside, next)
				case 1:
					os.Truncate(next, 5000)
					os.Truncate(next, shmring.HeaderSize+2<<20)
				case 2:
					os.Rename(next, aside)
					os.Symlink(other.Path, next)
					os.Remove(next)
					os.Rename(aside, next)
				case 3: // two files change places
					unix.Renameat2(unix.AT_FDCWD, next, unix.AT_FDCWD, p.Path, unix.RENAME_EXCHANGE)
				}
			}
		}()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		for begun := time.Now(); ; {
			err := r.Wait(ctx)
			if err != nil {
				break
			}
			b, err := r.Read(1 << 20)
			if err != nil {
				break
			}
			if r.Commit(b.End) != nil || time.Since(begun) > 5*time.Second {
				break
			}
		}
		cancel()
		if r.Capacity() == 2<<20 {
			moved++
		}
		r.Unlink()
		stop.Store(true)
		<-done
		os.Remove(next)
		os.Remove(p.Path) // a hard link to the other's, maybe: the attacker's own doing
		os.Remove(next + ".aside")
		is, now := look(t, other.Path)
		was.Ctim, is.Ctim = unix.Timespec{}, unix.Timespec{} // of links
		if is != was || now != content {
			t.Fatalf("round %d: the other's ring was touched:\n%+v\n%+v", i, was, is)
		}
		r.Close()
		p.Close()
		other.Close()
	}
	t.Logf("%d rounds, %d take-overs succeeded", rounds, moved)
}

// TestTakeOverOften follows a thousand times; the reader has one ring open at the end, and nothing is lost.
func TestTakeOverOften(t *testing.T) {
	rounds := uint64(100)
	if os.Getenv("HEAPCAM_FULL") != "" {
		rounds = 1000
	}
	p := create(t, ringtest.Config{Mapped: true})
	r := acquired(t, p)
	fds := func() int { l, _ := os.ReadDir("/proc/self/fd"); return len(l) }
	before := fds()
	n := uint64(0)
	for range rounds {
		n++
		commitNumber(t, p, n)
		check(t, p.Grow(shmring.MinCapacity<<(n%3), true))
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		for r.Path() != "" {
			check(t, r.Wait(ctx))
			b, err := r.Read(1 << 20)
			check(t, err)
			check(t, r.Commit(b.End))
			n++
			commitNumber(t, p, n) // in the new one
			check(t, r.Wait(ctx))
			b, err = r.Read(1 << 20)
			check(t, err)
			check(t, r.Commit(b.End))
			break
		}
		cancel()
	}
	if s, err := r.Status(); err != nil || s.Tail != p.Head() {
		t.Errorf("tail %d, head %d, %v", s.Tail, p.Head(), err)
	}
	if after := fds(); after > before+2 {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// TestEndlessChain has each ring that takes over have moved itself, without end: whoever waits can be stopped, and
// does not spin.
func TestEndlessChain(t *testing.T) {
	p := create(t, ringtest.Config{Mapped: true})
	r := acquired(t, p)
	next := p.Path + shmring.NextSuffix
	check(t, p.Poke32(shmring.OffState, uint32(shmring.StateMoved)))
	image, err := os.ReadFile(p.Path)
	check(t, err)
	check(t, os.WriteFile(next, image, 0o600))
	var stop atomic.Bool
	made := make(chan int)
	go func() {
		n := 0
		for ; !stop.Load(); n++ {
			check(t, os.WriteFile(next+".new", image, 0o600))
			for !stop.Load() && unix.Renameat2(unix.AT_FDCWD, next+".new", unix.AT_FDCWD, next,
				unix.RENAME_NOREPLACE) != nil {
			}
		}
		made <- n
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Wait(ctx) }()
	select {
	case err := <-done:
		stop.Store(true)
		n, bad := <-made, (*shmring.ViolationError)(nil) // the next one did not come fast enough
		t.Logf("%d take-overs in half a second, %v", n, err)
		if n > 100 || !errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &bad) {
			t.Error("it spins, or ends otherwise")
		}
	case <-time.After(5 * time.Second):
		stop.Store(true)
		t.Errorf("does not end: %d take-overs", <-made)
		<-done
	}
}

// TestScanTouchesRingsOnly: what is named like a successor of something that is no ring, or is not a file, stays as
// it is; so does all where the folder changes into another one meanwhile.
func TestScanTouchesRingsOnly(t *testing.T) {
	dir := t.TempDir()
	ring := shmring.FileName(7, 7)
	for _, name := range []string{"notes.next", ring + ".next.next", "heapcam-7-7.ring .next",
		"heapcam-07-7.ring.next", ".next", "heapcam-8-8.ring.next.next"} {
		check(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	check(t, unix.Mkfifo(filepath.Join(dir, shmring.FileName(9, 9)+".next"), 0o600))
	check(t, os.Symlink("notes.next", filepath.Join(dir, shmring.FileName(10, 10)+".next")))
	check(t, os.Mkdir(filepath.Join(dir, shmring.FileName(11, 11)+".next"), 0o700))
	names := func() string {
		es, _ := os.ReadDir(dir)
		s := ""
		for _, e := range es {
			s += e.Name() + "\n"
		}
		return s
	}
	was := names()
	paths, err := shmring.Scan(dir)
	if err != nil || len(paths) != 0 {
		t.Errorf("%v %v", paths, err)
	}
	if is := names(); is != was {
		t.Errorf("changed from\n%sto\n%s", was, is)
	}
}

// TestManyNames: a folder full of names takes neither memory nor time without bound.
func TestManyNames(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "x"))
	check(t, err)
	f.Close()
	for i := range 20000 {
		check(t, os.Link(filepath.Join(dir, "x"), filepath.Join(dir, shmring.FileName(uint32(i+1), 1))))
	}
	paths, err := shmring.Scan(dir)
	if err != nil || len(paths) > 4096 || len(paths) == 0 {
		t.Errorf("%d paths, %v", len(paths), err)
	}
}

// TestHugeMaps: how much a process has mapped decides neither what looking at it takes of memory nor how often it is
// looked at.
func TestHugeMaps(t *testing.T) {
	dir := t.TempDir()
	for range 4 {
		dir = filepath.Join(dir, strings.Repeat("d", 250))
	}
	check(t, os.MkdirAll(dir, 0o700))
	f, err := os.Create(filepath.Join(dir, "f"))
	check(t, err)
	defer f.Close()
	check(t, f.Truncate(1<<20))
	const n = 20000
	for range n { // by one page: two of them side by side stay two
		addr, _, e := unix.Syscall6(unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_SHARED, f.Fd(), 0)
		if e != 0 {
			t.Fatal(e)
		}
		defer unix.Syscall(unix.SYS_MUNMAP, addr, 4096, 0)
	}
	p := create(t, ringtest.Config{})
	r := acquired(t, p)
	check(t, p.Poke64(shmring.OffHeartbeat, shmring.Monotonic()-10_000_000_000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	for range 10 {
		if _, err := r.Alive(); err != nil {
			t.Fatal(err)
		}
	}
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
		t.Errorf("looked ten times: %d bytes allocated, %v", got, took)
	}
	runtime.ReadMemStats(&before)
	shmring.OpenOf(os.Getpid(), shmring.Options{})
	r.MappedBy(os.Getpid())
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 2<<20 {
		t.Errorf("looked for its ring: %d bytes allocated", got)
	}
}
