package probe

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBytecodes reads bodies of methods that are known, and 200,000 that are nonsense, under AddressSanitizer: each is
// in memory of exactly its length.
func TestBytecodes(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: bytecodes (there is no gcc)")
	}
	bin := filepath.Join(t.TempDir(), "bytecodes")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-Wall", "-Wextra", "-Werror", "-Isrc", "testdata/bytecodes.c", "src/bytecode.c",
		"-o", bin).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"hand"}, {"random", "200000"}} {
		out, err := exec.Command(bin, args...).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		if len(out) > 0 {
			t.Log(strings.TrimSpace(string(out)))
		}
	}
}
