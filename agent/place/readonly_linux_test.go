package place

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/jvms"
)

// TestReadOnlyFolders: where a JVM sees all folders for rings read-only, as below a unit with ReadOnlyPaths=/dev/shm,
// nothing is made and nothing refused: the probe has its ring in memory without a name. Any other obstacle is refused.
func TestReadOnlyFolders(t *testing.T) {
	tmp, _, j := stage(t)
	fixed := filepath.Join(tmp, "read-only")
	if err := os.Mkdir(fixed, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", fixed, "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Skipf("not run: folders that are mounted read-only (%v)", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(fixed, 0); err != nil {
			t.Error(err)
		}
	})
	for _, bases := range [][]string{{fixed}, {fixed, filepath.Join(tmp, "none")}} {
		ringBases = bases
		dir, err := ringDirIn(j, "/nonexistent", folderOf(j), false)
		if err != nil || dir.AsJVM != filepath.Join(fixed, folderOf(j)) {
			t.Errorf("%v: %q %v", bases, dir.AsJVM, err)
		}
		dir.Remove()
	}
	file := filepath.Join(tmp, "file")
	own(t, os.WriteFile(file, nil, 0o600), file)
	for _, bases := range [][]string{{fixed, file}, {file}} {
		ringBases = bases
		if dir, err := ringDirIn(j, "/nonexistent", folderOf(j), true); jvms.ObstacleOf(err) != jvms.Unrecordable {
			t.Errorf("%v: %q %v", bases, dir.AsJVM, err)
		}
	}
}
