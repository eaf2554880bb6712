package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/shmring"
)

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
	{"writev", []unix.Errno{unix.ENOSPC, unix.EINTR, 0}}, {"flock", []unix.Errno{unix.EINTR}},
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
	only := os.Getenv("HEAPCAM_FAULT") // NAME, NAME:N:COUNT:ERRNO, or I/N: one of N parts of the list, from 0 on
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
	if called["writev"] < 40 { // 17 of the first ring
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
	todo = partOf(todo, only)
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
		if said := strings.Contains(e.errs, "keep replacing the signal handler"); said != (n == 8) {
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

// TestDeniedCalls denies process_vm_readv, process_vm_writev and memfd_create, as seccomp filters of containers do. A
// file copies instead, and the JVM is recorded, with -Xcheck:jni too.
func TestDeniedCalls(t *testing.T) {
	t.Parallel()
	lib, deny := probeLibrary(t), compiledProgram(t, "deny", denySource)
	n := 0
	for i, e := range []unix.Errno{unix.EPERM, unix.ENOSYS, unix.EACCES} {
		for j, opt := range []string{"-Xcheck:jni", "-Xcomp"} {
			for k, major := range []int{17, 25} {
				if !full && (i+j+k)%2 == 1 {
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
				if r.last() != 4 {
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
		if e.took > 3*time.Minute { // 2 s where nothing else runs
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
