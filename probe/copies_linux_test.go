package probe

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCopies: where process_vm_readv is refused, a pipe copies as well: whole or not at all, without waiting, from any
// thread, and in a bounded part of a pause.
func TestCopies(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: copies of memory (there is no gcc)")
	}
	bin := filepath.Join(t.TempDir(), "copies")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I.",
		"-Isrc", "testdata/copies.c", "src/os_posix.c", "src/guard.c", "-o", bin, "-ldl", "-lpthread").
		CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	for _, e := range []unix.Errno{0, unix.EPERM, unix.ENOSYS, unix.EACCES} {
		for _, c := range []string{"copies", "pages", "exhausted", "many_pipes", "threads"} {
			if e == 0 && c == "exhausted" {
				continue // that needs none
			}
			t.Run(fmt.Sprintf("%d %s", e, c), func(t *testing.T) {
				out, err := exec.Command(bin, strconv.Itoa(int(e)), c).CombinedOutput()
				if err != nil {
					t.Errorf("%v: %s", err, out)
				}
				if len(out) > 0 {
					t.Log(strings.TrimSpace(string(out)))
				}
			})
		}
	}
}
