package fakejvm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// libcs gives the compilers of this machine, by the C library that their programs load.
func libcs(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for libc, cc := range map[string]string{"glibc": "gcc", "musl": "musl-gcc"} {
		if path, err := exec.LookPath(cc); err == nil {
			out[libc] = path
		}
	}
	return out
}

// build compiles the process: the VM as a shared library, as HotSpot is one, and a launcher.
func build(t *testing.T, cc, dir string, more ...string) string {
	t.Helper()
	home, err := exec.Command("../../tools/jdk-home").Output()
	if err != nil {
		t.Skip("not run: a process with HotSpot's tables (no JDK: tools/setup)")
	}
	headers := filepath.Join(strings.TrimSpace(string(home)), "include")
	launcher, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "fakejvm")
	text := "int fake(int, char **);\nint main(int c, char **v) { return fake(c, v); }\n"
	if err := os.WriteFile(launcher, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-isystem", headers, "-isystem",
		headers + "/linux", "-pthread"}
	flags = append(flags, more...)
	lib := filepath.Join(dir, "libjvm.so")
	for _, args := range [][]string{
		{"-fPIC", "-shared", "-Dmain=fake", "fakejvm.c", "-o", lib, "-ldl"},
		{launcher, "-o", program, lib, "-Wl,-rpath," + dir},
	} {
		if out, err := exec.Command(cc, append(append([]string{}, flags...), args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cc, err, out)
		}
	}
	return program
}

// TestFakeJVM: one library of the probe works with glibc and with musl. It refuses in one line, it records a process
// that ends and one that is killed in the middle of a collection, a fault in one of its reads costs one collection and
// no fault of the process is swallowed, and the recorded state is what the process's own collector left.
func TestFakeJVM(t *testing.T) {
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	heapcam := os.Getenv("HEAPCAM_BIN")
	if heapcam == "" {
		heapcam = filepath.Join(module, "bin", "heapcam")
	}
	probe := filepath.Join(module, "probe", "lib", "libheapcam-linux-amd64.so")
	for _, f := range []string{heapcam, probe} {
		if _, err := os.Stat(f); err != nil {
			t.Skip("not run: a process with HotSpot's tables (no probe or no program: make build)")
		}
	}
	compilers := libcs(t)
	if compilers["musl"] == "" {
		t.Log("not run: the probe in a process of musl (no musl-gcc: tools/setup musl-gcc:musl-tools)")
	}
	for libc, cc := range compilers {
		t.Run(libc, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			j := jvm{heapcam: heapcam, probe: probe, program: build(t, cc, dir), dir: dir}
			t.Run("refuses in one line", j.refuses)
			other := jvm{heapcam: heapcam, probe: probe, program: build(t, cc, t.TempDir(), "-DWITHOUT_TABLES")}
			t.Run("refuses other VMs", func(t *testing.T) { refusesOthers(t, j, other) })
			t.Run("is recorded", j.recorded)
		})
	}
}

type jvm struct{ heapcam, probe, program, dir string }

func (j jvm) run(options string, args ...string) (stdout, stderr string, err error) {
	c := exec.Command(j.program, append([]string{j.probe, options}, args...)...)
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	err = c.Run()
	return out.String(), log.String(), err
}

func (j jvm) refuses(t *testing.T) {
	for _, of := range [][]string{{"", "1", "nojvmti"}, {"colour=red", "1", "nojvmti"},
		{"", "3", "end", "1.8.0_400"}} {
		_, log, err := j.run(of[0], of[1:]...)
		if err != nil || strings.Count(log, "\n") != 1 || !strings.HasPrefix(log, "heapcam: ") {
			t.Errorf("%q: %v, %q: want one line", of, err, log)
		}
	}
}

// refusesOthers: a VM that is not HotSpot gets one line and runs to its end. tables has HotSpot's tables, none has not.
func refusesOthers(t *testing.T, tables, none jvm) {
	for _, c := range []struct {
		of         jvm
		name, want string
	}{
		{tables, "Eclipse OpenJ9 VM", "Eclipse OpenJ9 VM is not HotSpot"},
		{tables, "IBM J9 VM", "IBM J9 VM is not HotSpot"},
		{tables, "Substrate VM", "Substrate VM is not HotSpot"},
		{none, "Eclipse OpenJ9 VM", "Eclipse OpenJ9 VM is not HotSpot"},
		{none, "OpenJDK 64-Bit Server VM", "OpenJDK 64-Bit Server VM is not HotSpot"},
		{none, "Two\nlines\x1b[2J", "Two?lines?[2J is not HotSpot"},
		{none, "", "this VM is not HotSpot"},
	} {
		said, log, err := c.of.run("", "3", "end", "21.0.5", c.name)
		if err != nil || !strings.HasPrefix(said, "3 collections, ") || !strings.Contains(said, " 0 agent threads") ||
			log != "heapcam: not recording this JVM: "+c.want+": heapcam records only HotSpot JVMs\n" {
			t.Errorf("%q: %v, %q, %q", c.name, err, said, log)
		}
	}
}

func (j jvm) recorded(t *testing.T) {
	rings, out, socket := filepath.Join(j.dir, "rings"), filepath.Join(j.dir, "out"), filepath.Join(j.dir, "socket")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	agent := exec.Command(j.heapcam, "agent", "--shm-dir", rings, "--out", out, "--socket", socket,
		"--max-trace-size", "4MiB", "--overhead-cpu", "0") // this program does nothing but collect
	var log bytes.Buffer
	agent.Stdout, agent.Stderr = &log, &log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
		if t.Failed() {
			t.Logf("%s", log.String())
		}
	}()
	dir := filepath.Join(rings, fmt.Sprintf("heapcam-%d", os.Getuid()))
	const busy = time.Minute // nothing takes as long, but on a machine that does much else
	for end := time.Now().Add(busy); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		}
	}
	said, stderr, err := j.run("dir="+dir+",ring=4194304,storm=0,fault_at=7", "400", "end")
	state := regexp.MustCompile(`^400 collections, (\d+) objects, (\d+) bytes, .* (\d+) faults of others, (\d+) of`)
	m := state.FindStringSubmatch(said)
	if err != nil || m == nil || m[3] != m[4] {
		t.Fatalf("%v: %s%s", err, said, stderr)
	}
	if _, _, err := j.run("dir="+dir+",ring=4194304,storm=0,depth=full", "200", "kill"); err == nil {
		t.Error("the second process was not killed")
	}
	var found []string
	for end := time.Now().Add(busy); len(found) < 2 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		b, _ := exec.Command(j.heapcam, "status", "--socket", socket, "--out", out, "--json").Output()
		if n := len(regexp.MustCompile(`"phase": "(ended|gone|killed)"`).FindAll(b, -1)); n == 2 {
			found, _ = filepath.Glob(filepath.Join(out, "fakejvm-*"))
		}
	}
	if len(found) != 2 {
		t.Fatalf("%d recordings ended: %q\n%s", len(found), found, stderr)
	}
	ended := false
	for _, r := range found {
		b, err := exec.Command(j.heapcam, "verify", r).CombinedOutput()
		if err != nil || !regexp.MustCompile(`[1-9]\d* compared, 0 mismatches`).Match(b) {
			t.Errorf("verify: %v\n%s", err, b)
		}
		var h struct{ Objects, Bytes int64 }
		b, err = exec.Command(j.heapcam, "histogram", "--json", r).Output()
		if err == nil {
			err = json.Unmarshal(b, &h)
		}
		if err != nil {
			t.Errorf("histogram: %v", err)
		}
		ended = ended || fmt.Sprint(h.Objects, " ", h.Bytes) == m[1]+" "+m[2]
	}
	if !ended {
		t.Errorf("no recording holds the state that the collector left: %s", said)
	}
}
