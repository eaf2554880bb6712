package shmring_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
)

// TestMain lets this binary be a producer that can be killed, or an agent.
func TestMain(m *testing.M) {
	switch {
	case os.Getenv("RINGTEST_PRODUCE") != "":
		produce(os.Getenv("RINGTEST_PRODUCE"))
	case os.Getenv("RINGTEST_CONSUME") != "":
		consume(os.Getenv("RINGTEST_CONSUME"))
	default:
		os.Exit(m.Run())
	}
}

// produce commits numbered blocks as fast as they fit; after each it says so on stdout. In between it leaves halves
// of records.
func produce(dir string) {
	p, err := ringtest.Create(dir, ringtest.Config{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.Path)
	for n := uint64(1); ; n++ {
		payload := binary.LittleEndian.AppendUint64(make([]byte, 0, 4096), n)
		payload = payload[:8+n*37%4000]
		if p.Free() >= 8 { // else it would be written over what nobody has read
			p.WriteBehind(trace.AppendBlock(nil, trace.Block{Kind: trace.KindEpoch, Payload: payload})[:8])
		}
		for {
			ok, err := p.Commit(trace.Block{Kind: trace.KindEpoch, Payload: payload})
			if err != nil {
				os.Exit(1)
			}
			if ok {
				break
			}
			time.Sleep(time.Millisecond)
			p.Beat()
		}
		fmt.Println(n)
	}
}

// consume reads and commits; each number goes to stdout before its commit.
func consume(path string) {
	r, err := shmring.Open(path, shmring.Options{})
	if err == nil {
		_, err = r.Acquire()
	}
	for err == nil {
		if err = r.Wait(context.Background()); err != nil {
			break
		}
		var b shmring.Batch
		if b, err = r.Read(64 << 10); err != nil {
			break
		}
		var out []byte
		for x := range trace.Blocks(b.Data) {
			out = fmt.Appendf(out, "%d\n", binary.LittleEndian.Uint64(x.Payload))
		}
		os.Stdout.Write(out)
		err = r.Commit(b.End)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func start(t *testing.T, env string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// TestKilledProducer kills a producer at some moment: all that it said to have committed is read, then ErrGone.
func TestKilledProducer(t *testing.T) {
	for round := range 5 {
		cmd, out := start(t, "RINGTEST_PRODUCE="+t.TempDir())
		out.Scan()
		r, err := shmring.Open(out.Text(), shmring.Options{HostPID: cmd.Process.Pid * (round % 2)})
		if err != nil {
			t.Fatal(err, out.Text())
		}
		if _, err := r.Acquire(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(5+round*23)*time.Millisecond, func() { cmd.Process.Kill() })
		said := make(chan uint64)
		go func() {
			var last uint64
			for out.Scan() {
				fmt.Sscan(out.Text(), &last)
			}
			cmd.Wait() // a zombie too is gone, but this way both are tried
			said <- last
		}()
		var got uint64
		for {
			if err = r.Wait(context.Background()); err != nil {
				break
			}
			b, err := r.Read(100_000)
			if err != nil {
				t.Fatal(err)
			}
			for x, err := range trace.Blocks(b.Data) {
				if err != nil {
					t.Fatal(err)
				}
				if n := binary.LittleEndian.Uint64(x.Payload); n != got+1 {
					t.Fatalf("%d after %d", n, got)
				}
				got++
			}
			if err := r.Commit(b.End); err != nil {
				t.Fatal(err)
			}
		}
		last := <-said
		timer.Stop()
		// The JVM may have been killed before it reported the last commit.
		if !errors.Is(err, shmring.ErrGone) || got < last || got > last+1 {
			t.Errorf("round %d: %v; read %d, said %d", round, err, got, last)
		}
		if life, err := r.Alive(); life != shmring.Gone || err != nil {
			t.Errorf("alive: %v, %v", life, err)
		}
		r.Close()
	}
}

// TestKilledAgent kills agents again and again: each number arrives, in order, repeated at most from an agent's last
// commit on.
func TestKilledAgent(t *testing.T) {
	_, out := start(t, "RINGTEST_PRODUCE="+t.TempDir())
	out.Scan()
	path := out.Text()
	go func() {
		for out.Scan() {
		}
	}()
	var last uint64
	for round := range 6 {
		agent, numbers := start(t, "RINGTEST_CONSUME="+path)
		timer := time.AfterFunc(time.Duration(40+round*11)*time.Millisecond, func() { agent.Process.Kill() })
		first := true
		for numbers.Scan() {
			var n uint64
			fmt.Sscan(numbers.Text(), &n)
			switch {
			case first && last != 0 && n > last+1, !first && n != last+1:
				t.Fatalf("round %d: %d after %d", round, n, last)
			}
			first, last = false, n
		}
		timer.Stop()
		agent.Wait()
	}
	if last == 0 {
		t.Error("nothing arrived")
	}
}

// TestTwoRingsOnePID: JVMs of one pid in two namespaces differ by start time, and by namespace.
func TestTwoRingsOnePID(t *testing.T) {
	dir := t.TempDir()
	me, ticks := uint32(os.Getpid()), ringtest.StartTicks(os.Getpid())
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		t.Skip("not run:", err)
	}
	for _, c := range []struct {
		name  string
		ticks uint64
		ns    uint64
		want  shmring.Life
	}{
		{"mine", ticks, st.Ino, shmring.Alive},
		{"namespace unknown", ticks, 0, shmring.Alive},
		{"another namespace", ticks, st.Ino + 1, shmring.Gone},
		{"earlier process", ticks - 1, st.Ino, shmring.Gone},
	} {
		p, err := ringtest.Create(dir, ringtest.Config{PID: me, StartTicks: c.ticks, PIDNS: c.ns, Name: c.name})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		r := acquired(t, p)
		if life, err := r.Alive(); life != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.name, life, err)
		}
		if c.want == shmring.Gone {
			if err := r.Wait(context.Background()); !errors.Is(err, shmring.ErrGone) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestSilence: an old heartbeat is silence while the ring is mapped, and the end of it when the process has it mapped
// no more (exec).
func TestSilence(t *testing.T) {
	p := create(t, ringtest.Config{})
	r := open(t, p)
	f, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want shmring.Life) {
		t.Helper()
		if life, err := r.Alive(); life != want || err != nil {
			t.Errorf("%v, %v; want %v", life, err, want)
		}
	}
	expect(shmring.Alive)
	p.Poke64(shmring.OffHeartbeat, shmring.Monotonic()-shmring.StaleAfterNS-1e9)
	expect(shmring.Silent)
	if found, err := shmring.OpenOf(os.Getpid(), shmring.Options{}); err != nil || found.Session() != p.Session {
		t.Errorf("OpenOf: %v", err)
	} else {
		found.Close()
	}
	unix.Munmap(m)
	expect(shmring.Gone)
	p.State(shmring.StateDetached, "")
	expect(shmring.Ended)
	if _, err := shmring.OpenOf(os.Getpid(), shmring.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenOf without one: %v", err)
	}
}

func TestOpenTraps(t *testing.T) {
	p := create(t, ringtest.Config{})
	dir := filepath.Dir(p.Path)
	var not *shmring.NotRingError
	var owner *shmring.OwnerError
	link := filepath.Join(dir, "link")
	os.Symlink(p.Path, link)
	if _, err := shmring.Open(link, shmring.Options{}); err == nil {
		t.Error("a symbolic link was followed")
	}
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shmring.Open(fifo, shmring.Options{}); !errors.As(err, &not) {
		t.Errorf("fifo: %v", err)
	}
	if _, err := shmring.Open(p.Path, shmring.Options{CheckOwner: true, UID: os.Geteuid() + 1}); !errors.As(err,
		&owner) {
		t.Errorf("owner: %v", err)
	}
	// As a process sees it: a link within its root is followed there, and dots do not leave it.
	os.Mkdir(filepath.Join(dir, "real"), 0o700)
	os.Symlink(dir, filepath.Join(dir, "real", "alias"))
	r, err := shmring.OpenIn(os.Getpid(), filepath.Join(dir, "real/alias", filepath.Base(p.Path)), shmring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if r, err = shmring.OpenIn(os.Getpid(), "/../../.."+p.Path, shmring.Options{}); err != nil {
		t.Fatal(err)
	}
	// Unlink takes only its own file away.
	os.Rename(p.Path, p.Path+".x")
	os.WriteFile(p.Path, []byte("another"), 0o600)
	if err := r.Unlink(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Path); err != nil {
		t.Error("a file of another was unlinked")
	}
	r.Close()
}

func TestMemfd(t *testing.T) {
	p := create(t, ringtest.Config{Flags: shmring.FlagMemfd})
	commit(t, p, 100)
	b, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.MemfdCreate("heapcam.ring", unix.MFD_CLOEXEC)
	if err != nil {
		t.Skip("not run:", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	r, err := shmring.OpenOf(os.Getpid(), shmring.Options{CheckOwner: true, UID: os.Geteuid()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Acquire(); err != nil {
		t.Fatal(err)
	}
	if b, err := r.Read(1 << 20); err != nil || len(b.Data) == 0 {
		t.Error(len(b.Data), err)
	}
	if err := r.Unlink(); err != nil {
		t.Error(err)
	}
}

// TestTruncationRace truncates the file and makes it whole again while it is opened and read. What then fails is a
// violation, never a signal, and it is not all that happens: rings are opened, read, and found violated.
func TestTruncationRace(t *testing.T) {
	p := create(t, ringtest.Config{})
	for i := range 50 {
		commit(t, p, 100+i)
	}
	whole, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	var opened, refused, read, violated int
	enough := func() bool { return min(opened, refused, read) >= 20 && violated >= 3 }
	deadline := time.Now().Add(20 * time.Second) // it takes a tenth of a second
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- truncateAndRestore(p.Path, whole, stop) }()
	for !enough() && time.Now().Before(deadline) {
		r, err := shmring.Open(p.Path, shmring.Options{})
		if err != nil {
			refused++
			continue
		}
		opened++
		if _, err = r.Acquire(); err == nil {
			for range 50 { // each block on its own
				b, err := r.Read(1)
				if errors.Is(err, shmring.ErrSuperseded) { // the header that was restored names another agent
					break
				}
				if err != nil {
					violated++
					quarantined(t, err)
					break
				}
				if len(b.Data) > 0 {
					read++
				}
			}
		}
		r.Close()
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	t.Logf("rings: %d opened, %d refused; blocks read: %d; violations: %d",
		opened, refused, read, violated)
	if !enough() {
		t.Error("rings have to be opened, refused and read 20 times each, and to be violated 3 times")
	}
}

// truncateAndRestore cuts the file inside its data and inside its header, and writes again what it held, until stop.
func truncateAndRestore(path string, whole []byte, stop <-chan struct{}) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for round := 0; ; round++ {
		select {
		case <-stop:
			return nil
		default:
		}
		cut := int64(shmring.HeaderSize + 64)
		if round%2 == 1 {
			cut = 100
		}
		if err := f.Truncate(cut); err != nil {
			return err
		}
		if _, err := f.WriteAt(whole, 0); err != nil {
			return err
		}
		time.Sleep(time.Duration(round%5) * 100 * time.Microsecond)
	}
}

// TestMappedBy: a process that has the file mapped is distinguished from one that has not. So on overlayfs, where maps
// show other inodes than stat does.
func TestMappedBy(t *testing.T) {
	dir := t.TempDir()
	// an upper layer does not lie on an overlay
	if layers := t.TempDir(); unix.Mount("tmpfs", layers, "tmpfs", 0, "") == nil {
		t.Cleanup(func() { unix.Unmount(layers, 0) })
		for _, d := range []string{"u", "w"} {
			os.Mkdir(filepath.Join(layers, d), 0o700)
		}
		if unix.Mount("overlay", dir, "overlay", 0,
			fmt.Sprintf("lowerdir=%s,upperdir=%[2]s/u,workdir=%[2]s/w", t.TempDir(), layers)) == nil {
			t.Cleanup(func() { unix.Unmount(dir, 0) })
		}
	}
	p, err := ringtest.Create(dir, ringtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := open(t, p)
	f, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r.MappedBy(os.Getpid()) {
		t.Error("it is not mapped")
	}
	m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	if !r.MappedBy(os.Getpid()) {
		t.Error("it is mapped")
	}
	unix.Munmap(m)
	if r.MappedBy(os.Getpid()) {
		t.Error("it is not mapped any more")
	}
}
