package e2e

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heapcam/heapcam/probe"
	"github.com/heapcam/heapcam/shmring"
	"golang.org/x/sys/unix"
)

//go:embed native/faults.c
var faultsSource string

// probeLibrary is the probe as a file of its own; HEAPCAM_PROBE names another build of it.
func probeLibrary(t *testing.T) string {
	t.Helper()
	b, err := probe.Library()
	if other := os.Getenv("HEAPCAM_PROBE"); other != "" {
		b, err = os.ReadFile(other)
	}
	if err != nil {
		t.Skip("not run: attacks on the probe (it is not compiled: make probe)")
	}
	lib := filepath.Join(t.TempDir(), "libheapcam.so")
	if err := os.WriteFile(lib, b, 0o700); err != nil {
		t.Fatal(err)
	}
	return lib
}

// assault is one JVM with the probe and without an agent: the test itself is the ring's other side.
type assault struct {
	major  int
	gc     string
	lib    string
	dir    string // of the ring; default one in /dev/shm
	spool  bool
	opts   []string // of the JVM
	probe  string   // options
	env    []string
	wrap   []string
	main   []string                // default Assault with 3 threads
	grow   bool                    // wait for a larger ring
	unread bool                    // nobody reads the ring
	during func(pid int)           // while it records
	signal func(c *exec.Cmd) error // ends it otherwise
	keep   bool                    // do not detach
}

type ending struct {
	out, errs string
	code      int
	states    []uint32 // of the rings, the last one last
	capacity  uint64
	took      time.Duration
	killed    bool
	elsewhere bool // the ring is not where it was wanted
	detached  atomic.Bool
}

func word32(f *os.File, off int64) uint32 {
	var b [4]byte
	f.ReadAt(b[:], off)
	return binary.LittleEndian.Uint32(b[:])
}

func word64(f *os.File, off int64) uint64 {
	var b [8]byte
	f.ReadAt(b[:], off)
	return binary.LittleEndian.Uint64(b[:])
}

func put64(f *os.File, off int64, v uint64) {
	f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), off)
}

func monotonic() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}

// reader is what an agent does to a ring, and no more: it says that it lives, takes a larger ring over, reads,
// detaches.
func (a *assault) reader(end *ending, stop <-chan struct{}, detach <-chan struct{}) {
	var f *os.File
	defer func() {
		if f != nil {
			end.states = append(end.states, word32(f, shmring.OffState))
			end.capacity = word64(f, shmring.OffCapacity)
			f.Close()
		}
	}()
	path := ""
	for ; ; time.Sleep(3 * time.Millisecond) {
		select {
		case <-stop:
			return
		default:
		}
		if f == nil {
			if m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring")); len(m) > 0 {
				path = m[0]
				f, _ = os.OpenFile(path, os.O_RDWR, 0)
			}
			continue
		}
		var magic [8]byte
		if f.ReadAt(magic[:], 0); string(magic[:]) != "HEAPCAMR" {
			continue
		}
		put64(f, shmring.OffAgentHeartbeat, monotonic())
		if a.grow {
			f.WriteAt([]byte{3, 0, 0, 0}, shmring.OffDepthWanted) // its epochs fill the ring
		}
		if word32(f, shmring.OffState) == 7 {
			next, err := os.OpenFile(path+".next", os.O_RDWR, 0)
			if err == nil {
				end.states = append(end.states, 7)
				os.Rename(path+".next", path)
				f.Close()
				f = next
			}
			continue
		}
		if !a.unread && (!a.grow || word64(f, shmring.OffCapacity) > 4<<20) {
			put64(f, shmring.OffTail, word64(f, shmring.OffHead))
		}
		select {
		case <-detach:
			f.WriteAt([]byte{1, 0, 0, 0}, shmring.OffDetach)
			if word32(f, shmring.OffState) == 4 {
				end.detached.Store(true)
			}
		default:
		}
	}
}

// elsewhere is the ring that could not be made in its folder.
func elsewhere(pid int) []string {
	m, _ := filepath.Glob(fmt.Sprintf("/dev/shm/heapcam-%d-*.ring", pid))
	return m
}

// run starts the JVM, has it recorded, makes the ring grow if it is to, detaches, and ends it.
func (a assault) run(t *testing.T) *ending {
	t.Helper()
	end := &ending{}
	home := jdk(t, a.major)
	if a.dir == "" {
		dir, err := os.MkdirTemp("/dev/shm", "heapcam-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		a.dir = dir
	}
	file := filepath.Join(a.dir, "end")
	opt := "dir=" + a.dir
	if a.spool {
		opt = "spool:" + a.dir
	}
	args := append([]string{}, a.wrap...)
	args = append(args, filepath.Join(home, "bin", "java"), "-Xmx64m", "-Xmn2m", "-XX:+Use"+a.gc+"GC",
		"-XX:-CreateCoredumpOnCrash",
		"-XX:ErrorFile="+filepath.Join(a.dir, "hs_err"), "-agentpath:"+a.lib+"="+opt+a.probe)
	args = append(append(args, a.opts...), "-cp", classPath(t))
	if a.main == nil {
		a.main = []string{"Assault", file, "3"}
	}
	var out, errs buffer
	args = append(args, a.main...)
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(os.Environ(), a.env...)
	c.Stdout, c.Stderr = &out, &errs
	begun := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	stop, detach := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { defer wg.Done(); a.reader(end, stop, detach) }()
	exited := make(chan struct{})
	watchdog := time.AfterFunc(60*time.Second, func() { end.killed = true; c.Process.Kill() })
	go func() {
		wait := func(d time.Duration, f func() bool) {
			for from := time.Now(); time.Since(from) < d && !f(); time.Sleep(5 * time.Millisecond) {
				select {
				case <-exited:
					return
				default:
				}
			}
		}
		wait(10*time.Second, func() bool {
			m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring"))
			return strings.HasPrefix(out.String(), "pid ") && (len(m) > 0 || errs.String() != "")
		})
		if a.grow {
			wait(4*time.Second, func() bool {
				m, _ := filepath.Glob(filepath.Join(a.dir, "heapcam-*.ring"))
				for _, f := range m {
					if st, err := os.Stat(f); err == nil && st.Size() > 5<<20 {
						return true
					}
				}
				return strings.Contains(errs.String(), "heapcam:")
			})
		}
		wait(300*time.Millisecond, func() bool { return false })
		if a.during != nil {
			a.during(c.Process.Pid)
		}
		if !a.keep {
			close(detach)
			if a.signal == nil {
				wait(5*time.Second, func() bool {
					return end.detached.Load() || strings.Contains(errs.String(), "heapcam:") ||
						elsewhere(c.Process.Pid) != nil
				})
			}
		}
		if a.signal != nil {
			a.signal(c)
		} else {
			os.WriteFile(file, nil, 0o600)
		}
	}()
	c.Wait()
	close(exited)
	for _, m := range elsewhere(c.Process.Pid) {
		end.elsewhere = true
		os.Remove(m)
	}
	watchdog.Stop()
	end.took = time.Since(begun)
	close(stop)
	wg.Wait()
	end.out, end.errs, end.code = out.String(), errs.String(), c.ProcessState.ExitCode()
	if b, err := os.ReadFile(filepath.Join(a.dir, "hs_err")); err == nil {
		i := bytes.Index(b, []byte("Problematic frame"))
		end.errs += string(b[max(i, 0):][:min(300, len(b)-max(i, 0))])
		if at := bytes.Index(b, []byte("Native frames")); at > 0 {
			end.errs += string(b[at:][:min(1200, len(b)-at)])
		}
	}
	return end
}

func (e *ending) last() uint32 {
	if len(e.states) == 0 {
		return 99
	}
	return e.states[len(e.states)-1]
}

// lines are those of the probe.
func (e *ending) lines() (n int) {
	for _, l := range strings.Split(e.errs, "\n") {
		if strings.HasPrefix(l, "heapcam: ") {
			n++
		}
	}
	return n
}

// well demands what must hold whatever happens: the JVM comes to its end with the right result, and either the
// recording has its end or one line says that there is none.
func (e *ending) well(t *testing.T, what string) {
	t.Helper()
	if e.killed || e.code != 0 || !strings.HasSuffix(e.out, "\ndone\n") {
		t.Errorf("%s: the JVM: status %d, killed %v after %v, rings %v\n%s\n%s", what, e.code, e.killed,
			e.took, e.states,
			tail(e.out), tail(e.errs))
		return
	}
	told := e.last() == 4 || e.last() == 5 || e.elsewhere
	if n := e.lines(); n > 1 || n == 0 && !told {
		t.Errorf("%s: %d lines of the probe, rings %v\n%s", what, n, e.states, tail(e.errs))
	}
}

// failing are the calls of the probe that can fail, and how.
var failing = []struct {
	name   string
	errnos []unix.Errno // 0: short
}{
	{"open", []unix.Errno{unix.EMFILE, unix.ENOSPC, unix.EINTR, unix.EACCES}}, {"openat", []unix.Errno{unix.EPERM}},
	{"read", []unix.Errno{unix.EIO, 0}},
	{"pread", []unix.Errno{unix.EIO, unix.EINTR, 0}}, {"pwrite", []unix.Errno{unix.ENOSPC, unix.EIO, unix.EINTR, 0}},
	{"process_vm_readv", []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EFAULT, 0}},
	{"process_vm_writev", []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EFAULT, 0}},
	{"mmap", []unix.Errno{unix.ENOMEM, unix.EPERM}}, {"munmap", []unix.Errno{unix.EINVAL}},
	{"madvise", []unix.Errno{unix.EINVAL}},
	{"posix_fallocate", []unix.Errno{unix.ENOSPC, unix.EINTR, unix.EEXIST}}, {"flock", []unix.Errno{unix.EINTR}},
	{"unlink", []unix.Errno{unix.EPERM}},
	{"access", []unix.Errno{unix.EIO}}, {"sysconf", []unix.Errno{unix.EINVAL}}, {"strdup", []unix.Errno{unix.ENOMEM}},
	{"usleep", []unix.Errno{unix.EINTR}},
	{"close", []unix.Errno{unix.EIO}}, {"fcntl", []unix.Errno{unix.EINVAL}},
	{"syscall", []unix.Errno{unix.ENOSYS, unix.EPERM}},
	{"malloc", []unix.Errno{unix.ENOMEM}}, {"calloc", []unix.Errno{unix.ENOMEM}},
	{"pthread_getspecific", []unix.Errno{0}},
	{"sigaction", []unix.Errno{unix.EINVAL}},
}

// TestProbeFaults makes calls of the probe fail, one after the other, from its start over a growing ring to its end.
func TestProbeFaults(t *testing.T) {
	t.Parallel()
	lib, fail := probeLibrary(t), compiled(t, "libfaults.so", faultsSource, "-O1", "-ldl")
	majors := []int{17, 25}
	only := os.Getenv("HEAPCAM_FAULT") // NAME, or NAME:N:COUNT:ERRNO
	one := func(t *testing.T, i int, fault string, more ...string) {
		a := assault{major: majors[i%2], gc: collectors[i%3], lib: lib, grow: true, probe: ",interval=0",
			env: append([]string{"LD_PRELOAD=" + fail, "FAULT=" + fault}, more...)}
		e := a.run(t)
		e.well(t, fmt.Sprintf("%s (%s/%d)", fault, a.gc, a.major))
	}
	counts := filepath.Join(t.TempDir(), "counts")
	begun := time.Now()
	one(t, 0, "none:1:1:0", "FAULT_COUNTS="+counts)
	t.Log(time.Since(begun))
	b, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]int{}
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Fields(l); len(f) == 2 {
			called[f[0]], _ = strconv.Atoi(f[1])
		}
	}
	t.Logf("without a fault: %v", called)
	if called["posix_fallocate"] < 40 { // 17 of the first ring
		t.Error("the ring did not grow")
	}
	var todo []string
	for i, f := range failing {
		most := min(called[f.name], 12)
		if only == f.name {
			most = called[f.name]
		}
		for j, e := range f.errnos {
			for n := 1; n <= most; n++ {
				if full && (j == 0 || n <= 5) || only == f.name || (j == i%len(f.errnos) && n == 1+i%most && i%3 == 0) {
					todo = append(todo, fmt.Sprintf("%s:%d:1:%d", f.name, n, e))
				}
			}
			if most > 0 && (full || only == f.name) {
				todo = append(todo, fmt.Sprintf("%s:1:1000000000:%d", f.name, e),
					fmt.Sprintf("%s:%d:1000000000:%d", f.name, most/2+1, e),
					fmt.Sprintf("%s:%d:1:%d", f.name, called[f.name]*3/4, e),
					fmt.Sprintf("%s:%d:1000000000:%d", f.name, called[f.name]/2, e))
			}
		}
	}
	if strings.Contains(only, ":") {
		todo = []string{only}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				one(t, i, todo[i])
			}
		}()
	}
	for i := range todo {
		next <- i
	}
	close(next)
	wg.Wait()
	t.Logf("%d faults", len(todo))
}

// TestOwnHandlers has an agent of the application set handlers for SIGSEGV while the probe has set its own, in a pause.
// It passes on to the probe's what is not its own, and keeps getting what is.
func TestOwnHandlers(t *testing.T) {
	t.Parallel()
	lib, fail := probeLibrary(t), compiled(t, "libfaults.so", faultsSource, "-O1", "-ldl")
	for i, n := range []int{1, 3, 8} {
		a := assault{major: []int{17, 25}[i%2], gc: collectors[i], lib: lib, probe: ",interval=65536",
			env:    []string{"LD_PRELOAD=" + fail, fmt.Sprint("FAULT_HANDLERS=", n)},
			during: func(int) { time.Sleep(300 * time.Millisecond) }}
		e := a.run(t)
		e.well(t, fmt.Sprintf("%d handlers (%s/%d)", n, a.gc, a.major))
		if said := strings.Contains(e.errs, "keep setting handlers"); said != (n == 8) {
			t.Errorf("%d handlers: that the recording ends is said: %v\n%s", n, said, e.errs)
		}
	}
}

// TestSignalChaining has libjsig keep handlers from being set: the JVM's comes first then, and passes on to the
// probe's.
func TestSignalChaining(t *testing.T) {
	t.Parallel()
	lib := probeLibrary(t)
	for i, major := range []int{17, 25} {
		a := assault{major: major, gc: collectors[i], lib: lib, probe: ",interval=0,fault_at=3",
			env: []string{"LD_PRELOAD=" + filepath.Join(jdk(t, major), "lib", "libjsig.so")}}
		a.during = func(pid int) {
			m, _ := filepath.Glob(filepath.Join("/dev/shm/heapcam-test-*", fmt.Sprintf("heapcam-%d-*.ring", pid)))
			for _, r := range m {
				os.Truncate(r, 0)
			}
		}
		e := a.run(t)
		e.well(t, fmt.Sprintf("libjsig/%d", major))
		if !strings.Contains(e.errs, "stopped recording") {
			t.Errorf("libjsig/%d: nobody says that the recording has ended", major)
		}
	}
}

const denySource = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int n, char **a) { // ERRNO COMMAND...
    unsigned e = SECCOMP_RET_ERRNO | (unsigned)atoi(a[1]);
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1), BPF_STMT(BPF_RET | BPF_K, e),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    if (n < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p)) return 99;
    execv(a[2], a + 2);
    return 98;
}
`

func compiledProgram(t *testing.T, name, source string) string {
	t.Helper()
	dir := t.TempDir()
	src, bin := filepath.Join(dir, "p.c"), filepath.Join(dir, name)
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-O1", "-o", bin, src).CombinedOutput(); err != nil {
		t.Skipf("not run: %s (gcc: %v: %s)", name, err, out)
	}
	return bin
}

// TestDeniedCalls denies process_vm_readv, process_vm_writev and memfd_create, as seccomp filters of containers do.
func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	lib, deny := probeLibrary(t), compiledProgram(t, "deny", denySource)
	n := 0
	for i, e := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
		for j, opt := range []string{"-Xcheck:jni", "-Xcomp"} {
			for k, major := range []int{17, 25} {
				if !full && (i+j+k)%2 == 1 || false {
					continue
				}
				opts := []string{opt}
				if opt == "-Xcomp" {
					opts = nil
				}
				a := assault{major: major, gc: collectors[n%3], lib: lib, probe: ",interval=0",
					wrap: []string{deny, strconv.Itoa(int(e))}, opts: opts}
				n++
				r := a.run(t)
				r.well(t, fmt.Sprintf("denied with %d, %v (%s/%d)", e, opts, a.gc, major))
				t.Logf("%v %v %s/%d: %s", e, opts, a.gc, major, strings.TrimSpace(r.errs))
				if (r.last() == 4) == (opt == "-Xcheck:jni") {
					t.Errorf("denied with %v, %v (%s/%d): rings %v", e, opts, a.gc, major, r.states)
				}
			}
		}
	}
}

// TestLimits runs JVMs with less than the probe needs of what setrlimit gives, and with less than its ring.
func TestLimits(t *testing.T) {
	t.Parallel()
	lib := probeLibrary(t)
	for i, c := range []struct {
		limit    string
		recorded bool
	}{
		{"ulimit -f 1000", false}, {"ulimit -n 30", true}, {"ulimit -n 20", true}, {"ulimit -l 0", true},
		{"ulimit -v 3500000", true}, {"ulimit -s 512", true},
	} {
		if !full && i%2 == 1 {
			continue
		}
		a := assault{major: 17, gc: collectors[i%3], lib: lib, probe: ",interval=0",
			wrap: []string{"sh", "-c", c.limit + `; exec "$@"`, "sh"}}
		e := a.run(t)
		e.well(t, c.limit)
		t.Logf("%s: rings %v, %s", c.limit, e.states, strings.TrimSpace(e.errs))
	}
}

// TestForksOfRecorded has a JVM fork children that live on, and run programs, all the time.
func TestForksOfRecorded(t *testing.T) {
	t.Parallel()
	lib, fail := probeLibrary(t), compiled(t, "libfaults.so", faultsSource, "-O1", "-ldl")
	for i, major := range []int{17, 25} {
		a := assault{major: major, gc: collectors[2-i], lib: lib, grow: full, probe: ",interval=0",
			env: []string{"LD_PRELOAD=" + fail, "FAULT_FORKS=1"}}
		e := a.run(t)
		e.well(t, "forks")
		if e.last() != 4 {
			t.Errorf("forks/%d: rings %v\n%s", major, e.states, e.errs)
		}
	}
}

// TestTwoProbes loads the probe twice: the same file by another path, a copy of it, a copy with another folder.
func TestTwoProbes(t *testing.T) {
	if !full {
		t.Skip("not run: the probe loaded twice (make test-full; the second recording's end is not always seen)")
	}
	t.Parallel()
	lib := probeLibrary(t)
	b, err := os.ReadFile(lib)
	if err != nil {
		t.Fatal(err)
	}
	copied, link := filepath.Join(t.TempDir(), "libheapcam-copy.so"), filepath.Join(t.TempDir(), "libheapcam-link.so")
	if err := os.WriteFile(copied, b, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(lib, link); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ name, lib, dir string }{
		{"link", link, ""}, {"copy", copied, ""}, {"copy elsewhere", copied, t.TempDir()}} {
		dir, err := os.MkdirTemp("/dev/shm", "heapcam-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		if c.dir == "" {
			c.dir = dir
		}
		a := assault{major: []int{17, 25}[i%2], gc: collectors[i%3], lib: lib, dir: dir, probe: ",interval=0",
			opts: []string{"-agentpath:" + c.lib + "=interval=0,dir=" + c.dir}}
		e := a.run(t)
		t.Logf("%s: rings %v: %s", c.name, e.states, strings.TrimSpace(e.errs))
		if e.killed || e.code != 0 || !strings.HasSuffix(e.out, "\ndone\n") || e.last() != 4 {
			t.Errorf("%s: status %d, rings %v\n%s\n%s", c.name, e.code, e.states, tail(e.out), tail(e.errs))
		}
	}
}

// TestDescriptorTaken closes the descriptor of the ring and gives its number to a file of the application, at the worst
// moment: when the probe has just looked whether it still is its own. No byte of that file changes.
func TestDescriptorTaken(t *testing.T) {
	t.Parallel()
	lib, fail := probeLibrary(t), compiled(t, "libfaults.so", faultsSource, "-O1", "-ldl")
	for i, gc := range collectors {
		major := []int{17, 25}[i%2]
		victim := filepath.Join(t.TempDir(), "victim")
		was := bytes.Repeat([]byte("the application's own\n"), 1<<18)
		if err := os.WriteFile(victim, was, 0o600); err != nil {
			t.Fatal(err)
		}
		a := assault{major: major, gc: gc, lib: lib, probe: ",interval=0",
			env: []string{"LD_PRELOAD=" + fail, "FAULT_VICTIM=" + victim, fmt.Sprint("FAULT_VICTIM_AT=", 20+i)}}
		e := a.run(t)
		e.well(t, gc)
		if is, err := os.ReadFile(victim); err != nil || !bytes.Equal(is, was) {
			t.Errorf("%s/%d: the file of the application was written to: %v", gc, major, err)
		}
	}
}

// TestCrowdSampled samples threads that all allocate at once, and the allocations at the very end of a stack.
func TestCrowdSampled(t *testing.T) {
	t.Parallel()
	lib := probeLibrary(t)
	threads := "1000"
	if full {
		threads = "10000"
	}
	for i, major := range []int{17, 25} {
		a := assault{major: major, gc: collectors[i], lib: lib, probe: ",interval=1024", keep: true,
			main: []string{"Crowd", threads, "400"}, opts: []string{"-Xss180k"}}
		e := a.run(t)
		e.well(t, "crowd")
		if e.took > 30*time.Second {
			t.Errorf("%s threads took %v", threads, e.took)
		}
		t.Logf("%s: %v %s", threads, e.took, strings.TrimSpace(e.out))
		a = assault{major: major, gc: collectors[2-i], lib: lib, probe: ",interval=0,stack=512", keep: true,
			main: []string{"Deep", "2"}, opts: []string{"-Xss512k"}}
		e = a.run(t)
		e.well(t, "deep")
	}
}

// TestSuddenEnds ends JVMs in the middle of growth and detachment: their status is what it is without the probe.
func TestSuddenEnds(t *testing.T) {
	t.Parallel()
	lib := probeLibrary(t)
	sig := func(s os.Signal) func(*exec.Cmd) error { return func(c *exec.Cmd) error { return c.Process.Signal(s) } }
	n := 0
	for _, c := range []struct {
		name   string
		opts   []string
		signal func(*exec.Cmd) error
		code   int
	}{
		{"SIGTERM", nil, sig(unix.SIGTERM), 143}, {"SIGKILL", nil, sig(unix.SIGKILL), -1},
		{"SIGQUIT and SIGXFSZ and stops", nil, func(c *exec.Cmd) error {
			for range 20 {
				c.Process.Signal(unix.SIGSTOP)
				time.Sleep(5 * time.Millisecond)
				c.Process.Signal(unix.SIGCONT)
				c.Process.Signal(unix.SIGXFSZ)
				time.Sleep(5 * time.Millisecond)
			}
			c.Process.Signal(unix.SIGQUIT)
			time.Sleep(50 * time.Millisecond)
			return c.Process.Signal(unix.SIGTERM)
		}, 143},
	} {
		rounds := 1
		if full {
			rounds = 20
		}
		for i := range rounds {
			at := time.Duration(n*37%600) * time.Millisecond
			n++
			a := assault{major: []int{17, 25}[i%2], gc: collectors[n%3], lib: lib, probe: ",interval=0", opts: c.opts,
				keep:   i%2 == 0,
				signal: func(p *exec.Cmd) error { time.Sleep(at); return c.signal(p) }}
			if i%2 == 0 {
				a.grow = full
			}
			e := a.run(t)
			if e.killed || e.code != c.code || strings.Contains(e.errs, "Problematic frame") || e.lines() > 0 {
				t.Errorf("%s after %v (%s/%d): status %d, killed %v\n%s\n%s", c.name, at, a.gc, a.major,
					e.code, e.killed,
					tail(e.out), tail(e.errs))
			}
		}
	}
}

// TestAttachStorm loads the probe into a JVM from two processes at once, and detaches it, again and again, while all
// threads sample each allocation.
func TestAttachStorm(t *testing.T) {
	t.Parallel()
	lib := probeLibrary(t)
	rounds, majors := 2, []int{17}
	if full {
		rounds, majors = 60, []int{17, 25}
	}
	for i, major := range majors {
		dir, err := os.MkdirTemp("/dev/shm", "heapcam-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		file := filepath.Join(dir, "end")
		p := program{major: major, gc: collectors[1+i], heap: "64m", main: "Assault", args: []string{file, "8"},
			opts: []string{"-Xmn2m"}}
		r := p.plain(t)
		await(t, "pid", func() bool { return r.pid() > 0 })
		refused, recorded := 0, 0
		for n := range rounds {
			var wg sync.WaitGroup
			var mu sync.Mutex
			for range 2 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					out, _ := exec.Command(filepath.Join(jdk(t, major), "bin", "jcmd"), r.pidText(),
						"JVMTI.agent_load", lib,
						`"dir=`+dir+`,interval=0,ring=4194304"`).CombinedOutput()
					mu.Lock()
					defer mu.Unlock()
					if bytes.Contains(out, []byte("return code: 0")) {
						recorded++
					} else {
						refused++
					}
				}()
			}
			if n%2 == 0 {
				wg.Wait() // else the detachment comes while the second one loads
			}
			var ring string
			state, beat := uint32(99), uint64(0)
			limit := time.Now().Add(30 * time.Second)
			await(t, "the ring", func() bool {
				if time.Now().After(limit) {
					t.Fatalf("round %d: the recording does not end: ring %q, state %d, heartbeat %d, now %d",
						n, ring, state,
						beat, monotonic())
				}
				m, _ := filepath.Glob(filepath.Join(dir, "heapcam-*.ring"))
				if len(m) == 0 {
					return false
				}
				f, err := os.OpenFile(m[0], os.O_RDWR, 0)
				if err != nil {
					return false
				}
				defer f.Close()
				ring = m[0]
				put64(f, shmring.OffAgentHeartbeat, monotonic())
				put64(f, shmring.OffTail, word64(f, shmring.OffHead))
				state, beat = word32(f, shmring.OffState), word64(f, shmring.OffHeartbeat)
				if s := state; s == 1 && word64(f, shmring.OffHeartbeat) > 0 {
					f.WriteAt([]byte{1, 0, 0, 0}, shmring.OffDetach)
				} else if s == 4 || s == 6 {
					return true
				}
				return false
			})
			os.Remove(ring)
			wg.Wait()
			// the second one came after the end
			if m, _ := filepath.Glob(filepath.Join(dir, "heapcam-*.ring")); len(m) > 0 {
				await(t, "the second ring's end", func() bool {
					f, err := os.OpenFile(m[0], os.O_RDWR, 0)
					if err != nil {
						return false
					}
					defer f.Close()
					f.WriteAt([]byte{1, 0, 0, 0}, shmring.OffDetach)
					return word32(f, shmring.OffState) == 4
				})
				os.Remove(m[0])
			}
		}
		r.end(t, file)
		t.Logf("JDK %d: %d recordings, %d refused", major, recorded, refused)
		if recorded < rounds {
			t.Errorf("%d recordings, want at least %d", recorded, rounds)
		}
	}
}

// TestDetachFull detaches from a JVM whose ring is full since nobody reads it: the recording ends still, without its
// last block.
func TestDetachFull(t *testing.T) {
	t.Parallel()
	somePair(t, t.Name(), []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		a := assault{major: major, gc: gc, lib: probeLibrary(t), unread: true, probe: ",interval=0,ring=1048576",
			during: func(int) { time.Sleep(time.Second) }}
		if e := a.run(t); e.last() != 4 || e.code != 0 || e.killed || !strings.HasSuffix(e.out, "\ndone\n") {
			t.Errorf("status %d, rings %v\n%s\n%s", e.code, e.states, tail(e.out), tail(e.errs))
		}
	})
}
