package probe

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCopies: where process_vm_readv is missing or refused, and where a seccomp filter would end the process at it, a
// file without a name copies as well: whole or not at all, from any thread, and in a bounded part of a pause.
func TestCopies(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("not run: copies of memory (there is no gcc)")
	}
	bin := filepath.Join(t.TempDir(), "copies")
	if out, err := exec.Command("gcc", "-std=gnu11", "-O2", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I.",
		"-Isrc", "testdata/copies.c", "src/os_posix.c", "src/pool.c", "src/native.c", "src/guard.c", "-o", bin,
		"-ldl", "-lpthread").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	refused := func(e unix.Errno) string { return strconv.Itoa(int(e)) }
	for _, how := range []string{"0", refused(unix.EPERM), refused(unix.ENOSYS), refused(unix.EACCES), "missing",
		"kill", "blind", "later"} {
		for _, c := range []string{"copies", "pages", "exhausted", "no_room", "threads"} {
			if how == "0" && (c == "exhausted" || c == "no_room") {
				continue // that needs no file
			}
			t.Run(how+" "+c, func(t *testing.T) {
				t.Parallel()
				out, err := exec.Command(bin, how, c).CombinedOutput()
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
