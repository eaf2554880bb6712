package procfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestEndedProcess: through the folder of a process that has ended nothing is read and no signal is sent.
func TestEndedProcess(t *testing.T) {
	c := exec.Command("sleep", "600")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := Open(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if b, err := p.Read("cmdline", 5); err != nil || string(b) != "sleep" || !p.Alive() {
		t.Errorf("cmdline: %q %v", b, err)
	}
	if other, err := OpenStarted(p.PID, p.StartTicks+1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a process of another start: %v %v", other, err)
	}
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	c.Wait()
	if p.Alive() {
		t.Error("it is alive")
	}
	_, err1 := p.Read("status", 10)
	_, err2 := p.Root()
	_, err3 := p.Apart("user")
	for i, err := range []error{err1, err2, err3, p.Signal(unix.SIGKILL)} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestInRoot: no link leads out of a root, and nothing but a regular file is opened for reading.
func TestInRoot(t *testing.T) {
	dir := t.TempDir()
	outside, inside := filepath.Join(dir, "outside"), filepath.Join(dir, "root")
	err := errors.Join(os.MkdirAll(outside, 0o755), os.MkdirAll(inside+outside, 0o755))
	for f, text := range map[string]string{outside + "/f": "outside", inside + outside + "/f": "inside"} {
		err = errors.Join(err, os.WriteFile(f, []byte(text), 0o600))
	}
	err = errors.Join(err, os.Symlink(outside, inside+"/absolute"), os.Symlink("../outside", inside+"/relative"),
		syscall.Mkfifo(inside+"/fifo", 0o600), os.Symlink("/dev/zero", inside+"/device"))
	if err != nil {
		t.Fatal(err)
	}
	root, err := unix.Open(inside, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for path, want := range map[string]string{
		"/absolute/f": "inside", "/relative/f": "", "/../outside/f": "",
		"/fifo": "", "/device": "", "/absolute": "", "/none": "",
	} {
		f, _, err := RegularInRoot(root, path)
		if err != nil && want == "" {
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if b, _ := io.ReadAll(io.LimitReader(f, 100)); string(b) != want {
			t.Errorf("%s: %q, want %q", path, b, want)
		}
		f.Close()
	}
	if _, _, err := Regular(root, "absolute"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("a link: %v", err)
	}
	if _, err := InRoot(root, strings.Repeat("x", 5000), unix.O_PATH); err == nil {
		t.Error("no such path")
	}
}
