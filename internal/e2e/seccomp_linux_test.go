package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killSource installs a filter that ends the process at what the JVM does not need: as a program before the JVM, and
// as a library in a JVM that runs, once the file of KILL_AT is there.
const killSource = `
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#define AT(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), \
                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
static int filter(void) {
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        AT(SYS_process_vm_readv), AT(SYS_process_vm_writev), AT(SYS_pipe2), AT(SYS_memfd_create),
#ifdef SYS_pipe
        AT(SYS_pipe),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog p = {sizeof f / sizeof *f, f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &p);
}
#ifdef LATER
static void *wait(void *arg) {
    while (access(getenv("KILL_AT"), F_OK)) usleep(1000);
    if (filter()) abort();
    return arg;
}
__attribute__((constructor)) static void begin(void) {
    pthread_t t;
    if (pthread_create(&t, NULL, wait, NULL)) abort();
}
#else
int main(int n, char **a) { // COMMAND...
    if (n < 2 || filter()) return 99;
    execv(a[1], a + 1);
    return 98;
}
#endif
`

// TestKillingFilters: below a seccomp filter that ends the process at process_vm_readv, at pipes and at memfd_create,
// the JVM lives and is recorded: one that the JVM starts below, and one that it gets while it is recorded.
func TestKillingFilters(t *testing.T) {
	t.Parallel()
	lib, kill := probeLibrary(t), compiledProgram(t, "kill", killSource)
	if err := exec.Command(kill, "/bin/sh", "-c", "true | cat").Run(); !endedBy(err, syscall.SIGSYS) {
		t.Fatalf("the filter does not end a process that makes a pipe: %v", err)
	}
	later := compiled(t, "liblater.so", killSource, "-DLATER", "-O1", "-lpthread")
	for i, major := range []int{17, 25} {
		for j, opts := range [][]string{nil, {"-Xcheck:jni"}} {
			for k, when := range []string{"before", "later"} {
				if !full && (i+j+k)%2 == 1 {
					continue
				}
				var again func()
				a := assault{major: major, gc: collectors[(i+j+k)%3], lib: lib, opts: opts}
				if when == "before" {
					a.wrap, a.probe = []string{kill}, ",interval=0"
				} else { // fewer samples: a filter may come between a thread's question for one and its call
					at := filepath.Join(t.TempDir(), "now")
					a.env = []string{"LD_PRELOAD=" + later, "KILL_AT=" + at}
					a.during = func(pid int) { filterNow(t, pid, at) }
					again = func() { os.Remove(at) }
				}
				e := a.run(t)
				// The filter may come between a thread's question and its call (docs/explanation/limits.md).
				for n := 0; again != nil && e.code == -1 && n < 3; n++ {
					again()
					e = a.run(t)
				}
				what := fmt.Sprintf("killed at process_vm_readv, %s, %v (%s/%d)", when, opts, a.gc, major)
				e.well(t, what)
				if e.last() != 4 {
					t.Errorf("%s: rings %v\n%s", what, e.states, e.errs)
				}
			}
		}
	}
}

func endedBy(err error, sig syscall.Signal) bool {
	e, ok := err.(*exec.ExitError)
	if !ok {
		return false
	}
	s := e.Sys().(syscall.WaitStatus)
	return s.Signaled() && s.Signal() == sig || s.ExitStatus() == 128+int(sig)
}

// filterNow has the JVM filter its calls, and gives it time to be recorded below that.
func filterNow(t *testing.T, pid int, at string) {
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		t.Error(err)
	}
	filtered := func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return err == nil && strings.Contains(string(b), "\nSeccomp:\t2\n")
	}
	for end := time.Now().Add(5 * time.Second); !filtered() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if !filtered() {
		t.Error("the JVM has no filter")
	}
	time.Sleep(500 * time.Millisecond)
}

// TestAttachBelowFilter attaches to a JVM below such a filter.
func TestAttachBelowFilter(t *testing.T) {
	t.Parallel()
	needReader(t)
	kill := compiledProgram(t, "kill", killSource)
	somePair(t, "below a filter", majors(), collectors, func(t *testing.T, major int, gc string) {
		file, out := filepath.Join(t.TempDir(), "end"), filepath.Join(t.TempDir(), "rec")
		p := program{major: major, gc: gc, heap: "32m", main: "Until", args: []string{file, "2000", "10"}}
		r := p.plain(t, kill)
		await(t, "pid", func() bool { return r.pid() > 0 })
		if _, errs, code := heapcam(t, "record", "--out", out, "--for", "2s", r.pidText()); code != 0 {
			t.Errorf("record: status %d: %s", code, errs)
		}
		r.end(t, file)
		found, _ := filepath.Glob(filepath.Join(out, "Until-*"))
		if len(found) != 1 {
			t.Fatalf("recordings: %q", found)
		}
		verify(t, found[0], 1)
	})
}
