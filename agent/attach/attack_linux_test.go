package attach

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/internal/procfs"
)

// Users that no process here belongs to.
const (
	victim  = 61001
	hostile = 61002
)

// fakeEnv has this test program play a JVM that a hostile user wrote: its value is the root folder that it changes to,
// and what it does: "MODE ROOT".
const fakeEnv = "ATTACH_TEST_FAKE"

func TestMain(m *testing.M) {
	if v := os.Getenv(fakeEnv); v != "" {
		if err := playJVM(v); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// playJVM maps a libjvm.so and catches SIGQUIT. Mode "endless" listens and answers without an end; "quit" says when it
// gets SIGQUIT. It ends with its standard input.
func playJVM(v string) error {
	mode, root, _ := strings.Cut(v, " ")
	quit := make(chan os.Signal, 8)
	signal.Notify(quit, syscall.SIGQUIT)
	var err error
	for _, name := range strings.Split(os.Getenv(fakeEnv+"_LIB"), ":") {
		lib, oerr := os.Open(name)
		if err = errors.Join(err, oerr); oerr == nil {
			_, merr := unix.Mmap(int(lib.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
			err = errors.Join(err, merr)
		}
	}
	if err == nil && root != "" {
		err = errors.Join(syscall.Chroot(root), os.Chdir("/"))
	}
	if err != nil {
		return err
	}
	if mode == "endless" {
		sock := fmt.Sprintf("/tmp/.java_pid%d", os.Getpid())
		defer os.Remove(sock)
		l, err := net.Listen("unix", sock)
		if err != nil {
			return err
		}
		go answerEndlessly(l)
	}
	go func() {
		for range quit {
			fmt.Println("SIGQUIT")
		}
	}()
	fmt.Println("up")
	bufio.NewReader(os.Stdin).ReadByte()
	return nil
}

// answerEndlessly says how much of its answer was taken.
func answerEndlessly(l net.Listener) {
	c, err := l.Accept()
	if err != nil {
		return
	}
	taken, b := 0, []byte(strings.Repeat("x", 32<<10))
	for {
		n, err := c.Write(b)
		if taken += n; err != nil {
			fmt.Println(taken)
			return
		}
	}
}

// fake starts the JVM that playJVM plays, and gives its lines. more are further libraries that it maps.
func fake(t *testing.T, mode, root string, more ...string) (JVM, *bufio.Scanner) {
	t.Helper()
	var libs []string
	for _, name := range append(more, "libjvm.so") {
		lib := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(lib, make([]byte, 4096), 0o644); err != nil {
			t.Fatal(err)
		}
		libs = append(libs, lib)
	}
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), fakeEnv+"="+mode+" "+root, fakeEnv+"_LIB="+strings.Join(libs, ":"))
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); c.Wait() })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "up" {
		t.Fatalf("the process that plays a JVM says %q", lines.Text())
	}
	p, err := procfs.Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	return JVM{p.PID, p.StartTicks}, lines
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not run: files of other users (needs root)")
	}
}

// shortDir gives a folder whose path is short enough for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func openFolder(t *testing.T, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func self(t *testing.T) *procfs.Process {
	t.Helper()
	p, err := procfs.Open(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestAsLeavesFirstThread: whoever's ids the work was done with, the process stays its user's.
func TestAsLeavesFirstThread(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: ids of other users (needs root)")
	}
	for range 50 { // the scheduler decides on which thread
		if err := As(61001, 61001, func() error {
			if uid := syscall.Geteuid(); uid != 61001 {
				return fmt.Errorf("runs as %d", uid)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile("/proc/self/status")
	if err != nil || !strings.Contains(string(b), "Uid:\t0\t0\t0\t0\n") {
		t.Errorf("the process' first thread is another's: %s %v", b, err)
	}
}

// TestAsDropsGroups: what root's groups may write to, a thread with another user's ids may not, and the ids -1, which
// the kernel takes for "as it is", are refused.
func TestAsDropsGroups(t *testing.T) {
	needsRoot(t)
	const group = 61003
	// Of this thread alone, which is not used again: to change those of all threads at once, as the C library does it,
	// can crash the process while a thread of As ends.
	runtime.LockOSThread()
	groups := []uint32{group}
	if _, _, e := syscall.RawSyscall(syscall.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&groups[0])), 0); e != 0 {
		t.Fatal(e)
	}
	dir := shortDir(t)
	if err := errors.Join(os.Chown(dir, 0, group), os.Chmod(dir, 0o770)); err != nil {
		t.Fatal(err)
	}
	write := func() error { return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600) }
	if err := As(hostile, hostile, write); !errors.Is(err, os.ErrPermission) {
		t.Errorf("written with root's group: %v", err)
	}
	err := As(hostile, hostile, func() error {
		b, err := os.ReadFile("/proc/thread-self/status")
		if err == nil && !strings.Contains(string(b), "\nCapEff:\t0000000000000000\n") {
			err = fmt.Errorf("it has capabilities: %s", b)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, id := range [][2]int{{-1, hostile}, {hostile, -1}} {
		if err := As(id[0], id[1], write); err == nil {
			t.Errorf("%v is a user", id)
		}
	}
	if now, err := syscall.Getgroups(); err != nil || len(now) != 1 || now[0] != group {
		t.Errorf("the process' groups changed: %v %v", now, err)
	}
}

// TestFalseSocket: what another user has put in the place of a JVM's socket is not talked to.
func TestFalseSocket(t *testing.T) {
	needsRoot(t)
	dir := shortDir(t)
	tmp := openFolder(t, dir)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	err = os.Symlink("socket", filepath.Join(dir, "link"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		owner, jvm int
		ok         bool
	}{
		{"socket", victim, victim, true}, {"socket", 0, victim, true}, {"socket", hostile, victim, false},
		{"socket", victim, 0, false}, {"link", victim, victim, false}, {"file", victim, victim, false},
		{"none", victim, victim, false},
	} {
		os.Lchown(filepath.Join(dir, c.name), c.owner, c.owner)
		if err := listens(tmp, c.name, target{uid: c.jvm}); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSocketOfAnotherProcess: a socket of the right user at which another process than the JVM listens gets no
// command.
func TestSocketOfAnotherProcess(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	j, _ := fake(t, "quit", "")
	other, err := procfs.Open(j.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for p, ok := range map[*procfs.Process]bool{self(t): true, other: false} {
		c, err := dial(ctx, openFolder(t, dir), "s", target{p: p, uid: os.Geteuid()})
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
			t.Errorf("the JVM is this process: %v: %v", ok, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// TestSocketRace swaps the JVM's socket for a link to another one, over and over, while it is connected to: the other
// one is never reached.
func TestSocketRace(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "s")
	ours, err1 := net.Listen("unix", path)
	privileged, err2 := net.Listen("unix", filepath.Join(dir, "p"))
	err3 := os.Symlink("p", filepath.Join(dir, "link"))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer privileged.Close()
	go func() {
		for c, err := ours.Accept(); err == nil; c, err = ours.Accept() {
			c.Close()
		}
	}()
	reached := make(chan bool, 1)
	go func() { _, err := privileged.Accept(); reached <- err == nil }()
	over, swapped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(swapped)
		for {
			select {
			case <-over:
				return
			default:
				link := filepath.Join(dir, "link")
				unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	}()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	tmp, p, connected := openFolder(t, dir), self(t), 0
	for end := time.Now().Add(500 * time.Millisecond); time.Now().Before(end); {
		if c, err := dial(ctx, tmp, "s", target{p: p, uid: os.Geteuid()}); err == nil {
			connected++
			c.Close()
		}
	}
	close(over)
	<-swapped
	privileged.Close()
	if <-reached {
		t.Error("a link was followed to another socket")
	}
	if connected == 0 {
		t.Error("the JVM's own socket was never reached")
	}
}

// TestTriggerRights: no file is made where the JVM's user may not write, though root might: the JVM chose that folder.
func TestTriggerRights(t *testing.T) {
	needsRoot(t)
	dir, cwd := shortDir(t), shortDir(t)
	if err := errors.Join(os.Chmod(dir, 0o777|os.ModeSticky), os.Chmod(cwd, 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(cwd)
	target := target{p: self(t), nspid: 4711, uid: hostile, gid: hostile}
	remove, err := putTrigger(target, openFolder(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(cwd); len(left) > 0 {
		t.Errorf("made with root's rights: %v", left)
	}
	st, err := os.Lstat(filepath.Join(dir, ".attach_pid4711"))
	if err != nil || st.Sys().(*syscall.Stat_t).Uid != hostile {
		t.Errorf("%v %v", st, err)
	}
	remove()
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the trigger stays: %v", left)
	}
}

// TestPIDOfAnother: a process that has taken over the JVM's pid gets neither a signal nor a command.
func TestPIDOfAnother(t *testing.T) {
	j, lines := fake(t, "quit", "")
	ctx, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if err := Load(ctx, JVM{j.PID, j.StartTicks - 1}, "/x.so", ""); !errors.Is(err, ErrNoProcess) {
		t.Errorf("%v", err)
	}
	again, stop := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer stop()
	if err := Load(again, j, "/x.so", ""); !errors.Is(err, ErrTimeout) { // this one is signalled, and does not listen
		t.Errorf("%v", err)
	}
	if !lines.Scan() || lines.Text() != "SIGQUIT" {
		t.Errorf("the right process got no signal: %q", lines.Text())
	}
}

// TestEndlessAnswer: of an answer without an end no more is taken than an answer to load can have.
func TestEndlessAnswer(t *testing.T) {
	j, lines := fake(t, "endless", "")
	if err := Load(context.Background(), j, "/x.so", ""); !errors.Is(err, ErrProtocol) {
		t.Errorf("%v", err)
	}
	lines.Scan()
	if n, err := strconv.Atoi(lines.Text()); err != nil || n > 1<<20 { // the socket's buffer takes some, too
		t.Errorf("%q bytes were taken: %v", lines.Text(), err)
	}
}

// TestTmpIsALink: a /tmp that is a link leads to a folder of the JVM's own root, and not to ours of that name.
func TestTmpIsALink(t *testing.T) {
	needsRoot(t)
	root := shortDir(t)
	outside, err := os.MkdirTemp("/var/tmp", "hc") // not below /tmp: the link would lead to itself
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(outside)
	if err := os.Symlink(outside, filepath.Join(root, "tmp")); err != nil {
		t.Fatal(err)
	}
	j, _ := fake(t, "quit", root)
	p, err := procfs.Open(j.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if fd, err := openTmp(p); err == nil {
		unix.Close(fd)
		t.Error("the link led out of the JVM's root")
	}
	if err := os.MkdirAll(filepath.Join(root, outside), 0o777); err != nil {
		t.Fatal(err)
	}
	fd, err := openTmp(p)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	var ours, its unix.Stat_t
	if err := errors.Join(unix.Stat(outside, &ours), unix.Fstat(fd, &its)); err != nil || procfs.SameFile(&ours, &its) {
		t.Errorf("our folder is taken for the JVM's: %v", err)
	}
}
