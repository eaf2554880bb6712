package agent

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/svc"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

func init() {
	played["agent"], played["jvm"] = playAgent, playJVM
}

// playAgent is an agent below a service manager: it records the JVM whose pid it reads, and what the manager has
// kept.
func playAgent() {
	cfg := Config{Out: os.Getenv("HEAPCAM_TEST_OUT"), MaxTraceSize: 8 << 20, Compression: "none"}
	cfg.Log = zerolog.New(os.Stderr)
	cfg.Kept, cfg.KeepFD, cfg.DropFD = svc.Stored(), svc.Keep, func(name string) { svc.Drop(name) }
	a, err := New(cfg)
	if err != nil {
		panic(err)
	}
	go func() {
		pid, _ := strconv.Atoi(os.Getenv("HEAPCAM_TEST_PID"))
		for pid > 0 {
			a.takeOver("ring of "+strconv.Itoa(pid), pid)
			time.Sleep(pollFast)
		}
	}()
	a.Run(context.Background())
}

// playJVM has a ring mapped, and does nothing else.
func playJVM() {
	if _, err := unix.Mmap(3, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		panic(err)
	}
	fmt.Println("mapped")
	time.Sleep(time.Hour)
}

// manager does what systemd does with descriptors.
type manager struct {
	t      *testing.T
	socket string
	mu     sync.Mutex
	store  map[string]*os.File
	all    []string // messages
}

func newManager(t *testing.T) *manager {
	m := &manager{t: t, socket: filepath.Join(t.TempDir(), "notify"), store: map[string]*os.File{}}
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); m.serve(l) }()
	t.Cleanup(func() {
		l.Close()
		<-ended
		for _, f := range m.store {
			f.Close()
		}
	})
	return m
}

func (m *manager) serve(l *net.UnixConn) {
	b, oob := make([]byte, 4096), make([]byte, 4096)
	for {
		n, k, _, _, err := l.ReadMsgUnix(b, oob)
		if err != nil {
			return
		}
		state := map[string]string{}
		for line := range strings.Lines(string(b[:n])) {
			key, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			state[key] = v
		}
		name := state["FDNAME"]
		m.mu.Lock()
		m.all = append(m.all, strings.ReplaceAll(string(b[:n]), "\n", " "))
		if state["FDSTORE"] == "1" {
			msgs, _ := unix.ParseSocketControlMessage(oob[:k])
			for _, msg := range msgs {
				fds, _ := unix.ParseUnixRights(&msg)
				for _, fd := range fds {
					unix.CloseOnExec(fd)
					m.store[name] = os.NewFile(uintptr(fd), name)
				}
			}
		}
		if state["FDSTOREREMOVE"] == "1" && m.store[name] != nil {
			m.store[name].Close()
			delete(m.store, name)
		}
		m.mu.Unlock()
	}
}

func (m *manager) names() (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range m.store {
		out = append(out, n)
	}
	return out
}

// child starts this binary as what it plays; end is called once.
func child(t *testing.T, plays string, env []string, files []*os.File) (c *exec.Cmd, log *logBuffer, kill func()) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log = &logBuffer{}
	c = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0"`, exe)
	c.Env = append(append(os.Environ(), "HEAPCAM_TEST_PLAYS="+plays, "LISTEN_FDS="+strconv.Itoa(len(files))), env...)
	c.ExtraFiles, c.Stdout, c.Stderr = files, log, log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() { once.Do(func() { c.Process.Kill(); c.Wait() }) }
	t.Cleanup(kill)
	return c, log, kill
}

// agent starts an agent that this manager gives what it keeps.
func (m *manager) agent(out string, pid int) (log *logBuffer, kill func()) {
	m.t.Helper()
	m.mu.Lock()
	var names []string
	var files []*os.File
	for n, f := range m.store {
		names, files = append(names, n), append(files, f)
	}
	m.mu.Unlock()
	_, log, kill = child(m.t, "agent", []string{
		"NOTIFY_SOCKET=" + m.socket, "LISTEN_FDNAMES=" + strings.Join(names, ":"),
		"HEAPCAM_TEST_OUT=" + out, "HEAPCAM_TEST_PID=" + strconv.Itoa(pid)}, files)
	return log, kill
}

// TestKeptRing has a JVM whose ring is memory without a name and its agent killed: the next agent gets the ring from
// the service manager and stores all that is in it, once, into the recording that the one before began. What is no ring
// of ours is dropped.
func TestKeptRing(t *testing.T) {
	t.Parallel()
	m, out := newManager(t), filepath.Join(t.TempDir(), "out")
	p, err := ringtest.Create("", ringtest.Config{Memfd: true, Starting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ring, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	jvm, mapped, killJVM := child(t, "jvm", nil, []*os.File{ring})
	ring.Close()
	wait(t, func() bool { return strings.Contains(mapped.String(), "mapped") })
	pid := jvm.Process.Pid
	p.Poke32(shmring.OffPID, uint32(pid))
	p.Poke64(shmring.OffStartTicks, ringtest.StartTicks(pid))
	p.State(shmring.StateRecording, "")
	p.Ready()

	log, kill := m.agent(out, pid)
	model := tracetest.New(tracetest.Config{Seed: 9})
	r := &rig{t: t, a: &Agent{}}
	var eps []*tracetest.Epoch
	read := func() bool { p.Beat(); return p.Peek64(shmring.OffTail) == p.Head() }
	for range 6 {
		eps = append(eps, r.play(p, model, 4)...)
		wait(t, read)
	}
	name := fmt.Sprintf("heapcam-%d-%d-%s", pid, ringtest.StartTicks(pid), p.Session)
	if n := m.names(); len(n) != 1 || n[0] != name {
		t.Fatalf("kept: %q, want %q\n%s", n, name, log.String())
	}
	kill()
	eps = append(eps, r.play(p, model, 4)...) // nobody reads
	p.WriteBehind([]byte("a record that never gets finished"))
	killJVM()
	p.Close() // now only the manager has it
	for _, n := range []string{"stored", "heapcam-1-1-" + strings.Repeat("ab", 16)} {
		fd, err := unix.MemfdCreate("junk", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		m.mu.Lock()
		m.store[n] = os.NewFile(uintptr(fd), n)
		m.store[n].WriteString(strings.Repeat("junk", 5000))
		m.mu.Unlock()
	}
	log, kill = m.agent(out, 0)
	wait(t, func() bool { return len(m.names()) == 0 || strings.Contains(log.String(), "another agent") })
	wait(t, func() bool {
		return strings.Contains(log.String(), "recording ended") || strings.Contains(log.String(), "another agent")
	})
	kill()
	for _, n := range []string{`"stored"`, `"heapcam-1-1-`} {
		if k := strings.Count(log.String(), `"descriptor":`+n); k != 1 {
			t.Errorf("%d lines tell of the descriptor %s:\n%s", k, n, log.String())
		}
	}
	checkOnce(t, out, eps)
	stored := 0
	for _, msg := range m.all {
		if strings.Contains(msg, "FDSTORE=1") {
			stored++
		}
	}
	if stored != 1 {
		t.Errorf("the ring was handed over %d times: %q", stored, m.all)
	}
	if t.Failed() {
		t.Log(log.String())
	}
}

// checkOnce holds that the only recording below out has all epochs, once.
func checkOnce(t *testing.T, out string, eps []*tracetest.Epoch) {
	t.Helper()
	dirs, _ := filepath.Glob(filepath.Join(out, "*", ringstore.RecordingName))
	if len(dirs) != 1 {
		t.Fatalf("recordings: %q", dirs)
	}
	rec, err := ringstore.OpenRecording(filepath.Dir(dirs[0]))
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	var files [][]byte
	for _, f := range rec.Files {
		var b []byte
		for x, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			b = trace.AppendBlock(b, x)
		}
		files = append(files, b)
	}
	byGC := map[uint64]*tracetest.Epoch{}
	for _, e := range eps {
		byGC[e.Pause.GC] = e
	}
	sessiontest.CheckFiles(t, files, byGC)
}

// TestNamedRingOutlivesBoth: what JVM and agent left in a ring with a name is stored in the recording that the agent
// before began: there are the definitions that it refers to.
func TestNamedRingOutlivesBoth(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	jvm := exec.Command("sleep", "1000")
	if err := jvm.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill := func() { once.Do(func() { jvm.Process.Kill(); jvm.Wait() }) }
	defer kill()
	p, err := ringtest.Create(dir, ringtest.Config{PID: uint32(jvm.Process.Pid)})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	begin := func() (a *Agent, stop func()) {
		a, err := New(Config{Out: out, Watch: []string{dir}, MaxTraceSize: 8 << 20, Compression: "none"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); a.Run(ctx) }()
		return a, func() { cancel(); <-ended }
	}
	a, stop := begin()
	model, r := tracetest.New(tracetest.Config{Seed: 9}), &rig{t: t, a: a}
	eps := r.play(p, model, 4)
	wait(t, func() bool { p.Beat(); return p.Peek64(shmring.OffTail) == p.Head() }, a)
	stop()
	eps = append(eps, r.play(p, model, 4)...)
	kill()
	a, stop = begin()
	wait(t, func() bool { st := a.Status(); return len(st) == 1 && st[0].Phase == session.KilledPhase }, a)
	stop()
	checkOnce(t, out, eps)
}

// TestUnreadRingStaysKept: the manager keeps a ring that cannot be read yet, or that another agent reads. A ring that
// is stored to its end is dropped unread.
func TestUnreadRingStaysKept(t *testing.T) {
	t.Parallel()
	dropped := map[string]bool{}
	var mu sync.Mutex
	var files []*os.File
	kept := func(c ringtest.Config, change func(*ringtest.Producer)) string {
		t.Helper()
		c.Memfd, c.PID = true, uint32(1<<22+1+len(files))
		c.StartTicks = 1
		p, err := ringtest.Create("", c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		if change != nil {
			change(p)
		}
		name := fmt.Sprintf("heapcam-%d-1-%s", c.PID, p.Session)
		fd, err := unix.Open(p.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, os.NewFile(uintptr(fd), name))
		return name
	}
	newer := kept(ringtest.Config{ABI: shmring.ABI + 1}, nil)
	var lock *os.File
	busy := kept(ringtest.Config{}, func(p *ringtest.Producer) {
		lock, _ = os.OpenFile(p.Path, os.O_RDWR, 0)
		syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	})
	stored := kept(ringtest.Config{}, func(p *ringtest.Producer) { p.State(shmring.StateGoodbye, "") })
	dir := t.TempDir()
	a, err := New(Config{Out: filepath.Join(dir, "out"), Kept: files,
		KeepFD: func(name string, f *os.File) error { t.Errorf("%s was handed over", name); return nil },
		DropFD: func(name string) { mu.Lock(); dropped[name] = true; mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	a.store = func(ringstore.Config, ringstore.Identity, zerolog.Logger) (session.Store, error) {
		return &sessiontest.MemStore{Limit: 1 << 30}, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	is := func(name string) bool { mu.Lock(); defer mu.Unlock(); return dropped[name] }
	wait(t, func() bool { return is(stored) })
	time.Sleep(100 * time.Millisecond)
	if is(newer) || is(busy) || len(a.Status()) != 0 {
		t.Errorf("dropped: %v, recorded: %+v", dropped, a.Status())
	}
	lock.Close()
	wait(t, func() bool { return is(busy) }, a)
	if st := a.Status(); len(st) != 1 || !st[0].RingMemfd || !st[0].RingKept ||
		st[0].Phase != session.KilledPhase || is(newer) {
		t.Errorf("dropped: %v, %+v", dropped, st)
	}
}

// TestUnrecordableRingIsNotKept: the manager drops a ring that cannot be recorded, and has room for others.
func TestUnrecordableRingIsNotKept(t *testing.T) {
	kept := map[string]bool{}
	a, err := New(Config{Out: filepath.Join(t.TempDir(), "out"),
		KeepFD: func(name string, _ *os.File) error { kept[name] = true; return nil },
		DropFD: func(name string) { delete(kept, name) }})
	if err != nil {
		t.Fatal(err)
	}
	handed := false
	a.store = func(ringstore.Config, ringstore.Identity, zerolog.Logger) (session.Store, error) {
		handed = true
		return &sessiontest.MemStore{Limit: 1 << 30}, nil
	}
	a.cfg.Emergency = "none such" // New of package session refuses it
	p, err := ringtest.Create("", ringtest.Config{Memfd: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, err = a.session(func() (*shmring.Ring, error) {
		f, err := os.Open(p.Path)
		if err != nil {
			return nil, err
		}
		return shmring.OpenFile(f, shmring.Options{})
	}, nil)
	if err == nil || !handed || len(kept)+len(a.held) != 0 {
		t.Errorf("%v; opened: %v; kept: %v, %v", err, handed, kept, a.held)
	}
}
