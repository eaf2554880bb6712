//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOutput: what -o names is replaced if it is a file. A pipe or a device gets the bytes and stays what it is, and no
// symbolic link in the place of FILE.part is followed.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, failed error) error {
		w, end, err := output(name)
		if err != nil {
			return err
		}
		if _, err = w.WriteString("bytes"); err == nil {
			err = failed
		}
		return end(err)
	}
	file := filepath.Join(dir, "file")
	for _, failed := range []error{nil, errors.New("the source ended"), nil} {
		if err := write(file, failed); !errors.Is(err, failed) {
			t.Error(err)
		}
		if b, _ := os.ReadFile(file); string(b) != "bytes" {
			t.Errorf("the file has %q", b)
		}
		if _, err := os.Stat(file + ".part"); err == nil {
			t.Error("a part is left")
		}
	}

	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("not run: named pipes:", err)
	}
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(pipe)
		got <- string(b)
	}()
	if err := write(pipe, nil); err != nil || <-got != "bytes" {
		t.Errorf("pipe: %v", err)
	}
	if st, err := os.Lstat(pipe); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is now %v", st.Mode())
	}

	victim := filepath.Join(dir, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("keep"), 0o600), os.Symlink(victim, file+"2.part")); err != nil {
		t.Fatal(err)
	}
	if err := write(file+"2", nil); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Error(err)
	}
	if b, _ := os.ReadFile(victim); string(b) != "keep" {
		t.Errorf("the target has %q", b)
	}
	if err := write(dir, nil); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Error(err)
	}
}
