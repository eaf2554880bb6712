package probe

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullBuffer: a walk gets past a thread's allocation buffer that is full, also where the JVM reserves nothing
// behind its end, as from JDK 27 on with compact headers.
func TestFullBuffer(t *testing.T) {
	home, err := exec.Command("../tools/jdk-home").Output()
	if _, missing := exec.LookPath("gcc"); err != nil || missing != nil {
		t.Skip("not run: walks over allocation buffers (no JDK or no gcc: tools/setup)")
	}
	headers := filepath.Join(strings.TrimSpace(string(home)), "include")
	bin := filepath.Join(t.TempDir(), "tlabs")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-isystem",
		headers, "-isystem", headers+"/linux", "-I.", "-Isrc", "testdata/tlabs.c", "src/tlabs.c", "src/tally.c", "-o",
		bin).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, reserve := range []string{"0", "16"} {
		if out, err := exec.Command(bin, reserve).CombinedOutput(); err != nil {
			t.Errorf("%s bytes behind a buffer: %v: %s", reserve, err, out)
		}
	}
}
