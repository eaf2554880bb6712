package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/procfs"
)

// TestOpenJ9: it has a libjvm.so, and SIGQUIT makes it write a dump: it gets no signal.
func TestOpenJ9(t *testing.T) {
	j, lines := fake(t, "quit", "", "libj9vm29.so")
	if err := Load(context.Background(), j, "/x", ""); !errors.Is(err, ErrNotJVM) {
		t.Errorf("got %v, want ErrNotJVM", err)
	}
	p, err := os.FindProcess(j.PID) // a signal of our own is the first that it says
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if err := p.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "SIGQUIT" {
		t.Fatalf("it says %q", lines.Text())
	}
	said := make(chan bool, 1)
	go func() { said <- lines.Scan() }()
	select {
	case <-said:
		t.Error("it got a signal")
	case <-time.After(200 * time.Millisecond):
	}
}

// TestNoAgentLoading: a JVM that loads no agents while it runs is refused before it is asked: no socket, no line.
// Where its options cannot be seen, its own refusal is given. Commands are answered.
func TestNoAgentLoading(t *testing.T) {
	const off = "-XX:-EnableDynamicAgentLoading"
	ctx := context.Background()
	for _, major := range []string{"17", "25"} {
		t.Run(major, func(t *testing.T) {
			dir := compiled(t)
			bin := java(t, major)
			hidden := filepath.Join(dir, "hidden")
			if err := os.WriteFile(hidden, []byte(off), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct {
				env, arg string
				refused  bool
			}{
				{"", off, true}, {"JAVA_TOOL_OPTIONS=" + off, "-XX:+UseSerialGC", true}, {"", "@" + hidden, false},
			} {
				cmd := exec.Command(bin, c.arg, "-XX:+UseSerialGC", "-cp", dir, "Sleeper")
				cmd.Env = append(os.Environ(), c.env)
				launch(t, cmd)
				pid := cmd.Process.Pid
				err := Load(ctx, of(pid), "/nonexistent/lib.so", "")
				var load *LoadError
				if c.refused && !errors.Is(err, ErrLoading) ||
					!c.refused && (!errors.As(err, &load) || !strings.Contains(load.Text, off[5:])) ||
					err == nil || strings.Contains(err.Error(), "\n") {
					t.Errorf("%+v: %v", c, err)
				}
				socket := fmt.Sprintf("/tmp/.java_pid%d", pid)
				if _, err := os.Lstat(socket); c.refused && !os.IsNotExist(err) {
					t.Errorf("%+v: it was asked all the same: %v", c, err)
				}
				if _, err := Command(ctx, of(pid), "properties"); err != nil {
					t.Errorf("%+v: properties: %v", c, err)
				}
			}
		})
	}
}

// TestForbids: the last of several options counts, wherever they are.
func TestForbids(t *testing.T) {
	const on, off = "-XX:+EnableDynamicAgentLoading", "-XX:-EnableDynamicAgentLoading"
	for _, c := range []struct {
		env  []string
		args []string
		want bool
	}{
		{nil, []string{"sleep", "600"}, false},
		{nil, []string{"sleep", "600", off}, true},
		{nil, []string{"sleep", "600", off, on}, false},
		{nil, []string{"sleep", "600", on, off, "-XX:", "-XX:-Other"}, true},
		{[]string{"JAVA_TOOL_OPTIONS=-Xmx1g " + off}, []string{"sleep", "600"}, true},
		{[]string{"JAVA_TOOL_OPTIONS=" + off}, []string{"sleep", "600", on}, false},
		{[]string{"JDK_JAVA_OPTIONS=" + off}, []string{"sleep", "600"}, true},
		{[]string{"_JAVA_OPTIONS=" + on}, []string{"sleep", "600", off}, false},
		{[]string{"_JAVA_OPTIONS=" + off}, []string{"sleep", "600", on}, true},
		{[]string{"MY_JAVA_OPTIONS=" + off}, []string{"sleep", "600"}, false},
	} {
		// A shell that waits keeps these as its arguments.
		cmd := exec.Command("sh", append([]string{"-c", "echo up; read x; exit $?"}, c.args...)...)
		cmd.Env = append(os.Environ(), c.env...)
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		launch(t, cmd)
		p, err := procfs.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if got := forbids(p, "-EnableDynamicAgentLoading"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		p.Close()
	}
}
