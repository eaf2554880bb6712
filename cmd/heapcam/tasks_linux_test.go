package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTasksLeft reads the limit of a cgroup.
func TestTasksLeft(t *testing.T) {
	for most, want := range map[string]int64{"max": -1, "30": 13, "10": 0, "": -1} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most+"\n"), 0o600),
			os.WriteFile(filepath.Join(dir, "pids.current"), []byte("17\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		left, ok := tasksLeft(dir)
		if !ok {
			left = -1
		}
		if left != want {
			t.Errorf("%q: %d, want %d", most, left, want)
		}
	}
}

// TestRunWithFewTasks: `heapcam run` under a small limit of processes says so before anything fails for it.
func TestRunWithFewTasks(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: a limit of processes (needs root, to be another user)")
	}
	dir, err := os.MkdirTemp("", "hc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	program := filepath.Join(dir, "heapcam")
	if err := errors.Join(err, os.WriteFile(program, b, 0o755), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	const nobody = 61003
	c := exec.Command("bash", "-c", "ulimit -u 20; exec "+program+" run --out rec -- true")
	c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, _ := c.CombinedOutput(); !strings.HasPrefix(string(out), "heapcam: this user may have 20 processes") {
		t.Errorf("%s", out)
	}
}
