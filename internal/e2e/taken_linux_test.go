package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/agent/session"
)

// libnuma tells a JVM of a machine of two nodes, on which its memory lies in turns: UseNUMA stays on then, as it does
// not on a machine of one.
const libnuma = `
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
struct bitmask { unsigned long size; unsigned long *maskp; };
static unsigned long two = 3, none = 0;
static struct bitmask nodes = {2, &two}, off = {2, &none};
struct bitmask *numa_all_nodes_ptr = &nodes, *numa_nodes_ptr = &nodes;
unsigned long *numa_all_nodes = &two;
int numa_available(void) { return 0; }
int numa_max_node(void) { return 1; }
int numa_num_configured_nodes(void) { return 2; }
int numa_node_to_cpus(int node, struct bitmask *m) {
    memset(m->maskp, 0, m->size / 8);
    m->maskp[0] = 1ul << node;
    return 0;
}
void numa_tonode_memory(void *p, size_t n, int node) { (void)p, (void)n, (void)node; }
void numa_interleave_memory(void *p, size_t n, struct bitmask *m) { (void)p, (void)n, (void)m; }
void numa_set_bind_policy(int s) { (void)s; }
void numa_set_preferred(int node) { (void)node; }
int numa_bitmask_isbitset(const struct bitmask *b, unsigned n) { return n < 2 && (b->maskp[0] >> n & 1); }
int numa_bitmask_equal(const struct bitmask *a, const struct bitmask *b) { return a->maskp[0] == b->maskp[0]; }
int numa_distance(int a, int b) { return a == b ? 10 : 20; }
struct bitmask *numa_get_membind(void) { return &nodes; }
struct bitmask *numa_get_interleave_mask(void) { return &off; }
struct bitmask *numa_get_run_node_mask(void) { return &nodes; }
long numa_move_pages(int pid, unsigned long n, void **pages, const int *to, int *status, int flags) {
    (void)pid, (void)pages, (void)to, (void)flags;
    for (unsigned long i = 0; i < n; i++) status[i] = (int)(i & 1);
    return 0;
}
`

const libnumaVersions = `
libnuma_1.1 { numa_a*; numa_m*; numa_num*; numa_nodes_ptr; numa_t*; numa_s*; numa_b*; numa_d*; };
libnuma_1.2 { numa_node_to_cpus; numa_interleave_memory; numa_get_*; } libnuma_1.1;
`

// compiled builds a shared library of C source; flags are gcc's.
func compiled(t *testing.T, name, source string, flags ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("not run: %s (there is no gcc)", name)
	}
	dir := t.TempDir()
	lib, src := filepath.Join(dir, name), filepath.Join(dir, "lib.c")
	if err := os.WriteFile(src, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc",
		append(flags, "-shared", "-fPIC", "-o", lib, src)...).CombinedOutput(); err != nil {
		t.Skipf("not run: %s (gcc: %v: %s)", name, err, out)
	}
	return lib
}

// TestNUMA runs JVMs that take the machine for one of two nodes: Parallel parts eden by node and is refused by name; G1
// is recorded, and what is replayed agrees with what is listed.
func TestNUMA(t *testing.T) {
	t.Parallel()
	versions := filepath.Join(t.TempDir(), "numa.map")
	if err := os.WriteFile(versions, []byte(libnumaVersions), 0o600); err != nil {
		t.Fatal(err)
	}
	lib := compiled(t, "libnuma.so.1", libnuma, "-Wl,-soname,libnuma.so.1", "-Wl,--version-script="+versions)
	somePair(t, "numa", []int{17, 25}, []string{"G1", "Parallel"}, func(t *testing.T, major int, gc string) {
		p := program{major: major, gc: gc, heap: "64m", main: "Steady", args: []string{"25000", "20000"},
			limit: "64MiB",
			flags: []string{"--emergency", "off", "--depth", "full"},
			opts:  []string{"-XX:+UseNUMA", "-Xlog:os=info:file=%s"},
			env:   []string{"LD_LIBRARY_PATH=" + filepath.Dir(lib)}}
		if gc == "Parallel" {
			p.args = []string{"10", "20000"}
		}
		log := filepath.Join(t.TempDir(), "os.log")
		p.opts[1] = strings.Replace(p.opts[1], "%s", log, 1)
		r := p.start(t)
		r.finish(t)
		if b, err := os.ReadFile(log); err != nil || !strings.Contains(string(b), "NUMA memory nodes: 0 1") {
			t.Fatalf("the JVM does not take the machine for one of two nodes: %v %s", err, b)
		}
		if gc != "Parallel" {
			verify(t, checkCount(t, r).dir, 1)
			return
		}
		if s := r.stderr.String(); !strings.Contains(s, "-XX:+UseNUMA splits Parallel's eden by node") ||
			!strings.Contains(s, "use G1 or -XX:-UseNUMA") {
			t.Errorf("it is not refused by name: %s", s)
		}
	})
}

// TestSamplingTaken attaches to a JVM in which another agent holds the sampling of allocations: it is recorded, and
// status tells what is missing and why.
func TestSamplingTaken(t *testing.T) {
	t.Parallel()
	inc := filepath.Join(jdk(t, 17), "include")
	lib := compiled(t, "libother.so", otherAgent, "-I"+inc, "-I"+filepath.Join(inc, "linux"))
	d := newDaemon(t)
	d.start(t)
	file := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "G1", heap: "64m", opts: []string{"-agentpath:" + lib}, main: "Until",
		args: []string{file, "2000", "1"}}
	r := p.plain(t)
	await(t, "pid", func() bool { return r.pid() > 0 })
	if errs, code := d.attach(t, r.pidText()); code != 0 {
		t.Fatalf("attach: status %d: %s", code, errs)
	}
	var s session.Status
	await(t, "collections", func() bool {
		for _, s = range d.status(t).JVMs {
		}
		return s.LastGC > 3
	})
	if !s.NoSites || s.Phase != session.Recording || s.Samples != 0 {
		t.Errorf("%+v", s)
	}
	if out, _, _ := heapcam(t, "status", "--socket", d.sock, "--out", d.out); !strings.Contains(out,
		"no allocation sites: another agent in this JVM uses allocation sampling") {
		t.Errorf("status does not tell: %s", out)
	}
	r.end(t, file)
	d.stop(t)
	if !strings.Contains(r.stderr.String(), "other agent: sampled") {
		t.Error("the other agent lost what it had")
	}
	verify(t, s.Dir, 1)
}
