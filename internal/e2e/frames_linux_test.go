package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/probe"
)

var stacksSum = regexp.MustCompile(
	`sampled stacks: (\d+) known, (\d+) new, (\d+) not read here; compared (\d+), differed (\d+)`)

var composedSum = regexp.MustCompile(`sampled stacks: (\d+) composed; learnt from (\d+), of which (\d+) differed`)

// TestKnownStacks compares each stack that the probe knows or composes with what the JVM says: of interpreted,
// compiled, deoptimised and unloaded code. -Xcheck:jni has nothing to say.
func TestKnownStacks(t *testing.T) {
	t.Parallel()
	lib, err := probe.Library()
	if err != nil {
		t.Skip("not run: stacks that are known by their number (the probe is not compiled: make probe)")
	}
	if !strings.Contains(string(lib), "sampled stacks: %llu known") {
		t.Fatal("the probe does not say what it has counted")
	}
	jvms := []struct {
		major int
		flags []string
	}{{17, []string{"-XX:+UseG1GC", "-Xcheck:jni"}}, {25, []string{"-XX:+UseParallelGC"}}}
	if full {
		jvms = append(jvms, []struct {
			major int
			flags []string
		}{{17, []string{"-XX:+UseSerialGC"}}, {17, []string{"-XX:+UseParallelGC", "-Xint"}},
			{25, []string{"-XX:+UseG1GC", "-XX:+UseCompactObjectHeaders"}},
			{25, []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xcheck:jni"}}}...)
	} else {
		t.Log("not run: four more pairs of JDK and options (HEAPCAM_FULL=1)")
	}
	for _, j := range jvms {
		dir := t.TempDir()
		so := filepath.Join(dir, "libheapcam.so")
		if err := os.WriteFile(so, lib, 0o700); err != nil {
			t.Fatal(err)
		}
		args := append(j.flags, "-Xmx64m", "-Xmn8m", "-agentpath:"+so+"=dir="+dir+",ask=2,interval=4096",
			"-cp", classPath(t), "Frames", "24")
		out, err := exec.Command(filepath.Join(jdk(t, j.major), "bin", "java"), args...).CombinedOutput()
		m := stacksSum.FindStringSubmatch(string(out))
		if err != nil || m == nil {
			t.Errorf("%d %v: %v\n%s", j.major, j.flags, err, tail(string(out)))
			continue
		}
		n := make([]int, len(m))
		for i := range m[1:] {
			n[i+1], _ = strconv.Atoi(m[i+1])
		}
		if n[1] < 1000 || n[3] > (n[1]+n[2])/20 || n[4] < n[1] || n[5] != 0 {
			t.Errorf("%d %v: %s", j.major, j.flags, m[0])
		}
		c := composedSum.FindStringSubmatch(string(out))
		if c == nil || c[3] != "0" {
			t.Errorf("%d %v: composed stacks: %v", j.major, j.flags, c)
		} else if made, _ := strconv.Atoi(c[1]); made < n[2]*3/4 || n[4] < n[1]+made-1 {
			t.Errorf("%d %v: %s; %s", j.major, j.flags, m[0], c[0])
		}
		if s := string(out); strings.Contains(s, "WARNING in native") || strings.Contains(s, "FATAL ERROR") {
			t.Errorf("%d %v: -Xcheck:jni: %s", j.major, j.flags, tail(s))
		}
		t.Logf("%d %v: %s", j.major, j.flags, m[0])
	}
}
