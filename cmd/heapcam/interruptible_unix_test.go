//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestInterruptible: what does not look at its context ends soon after a signal all the same, or with the next one at
// once, and leaves no file behind. The test is its own program.
func TestInterruptible(t *testing.T) {
	const file = "HEAPCAM_TEST_UNFINISHED"
	if name := os.Getenv(file); name != "" {
		_, stop := interruptible(context.Background())
		defer stop()
		unfinished.Store(name)
		fmt.Println("ready")
		time.Sleep(time.Minute)
		return
	}
	t.Parallel()
	for _, signals := range []int{1, 2} {
		name := t.TempDir() + "/part"
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c := exec.Command(os.Args[0], "-test.run", "^TestInterruptible$")
		c.Env = append(os.Environ(), file+"="+name)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		c.Stderr = &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		watchdog := time.AfterFunc(30*time.Second, func() { c.Process.Kill() })
		for s := bufio.NewScanner(out); s.Scan() && s.Text() != "ready"; {
		}
		for range signals {
			c.Process.Signal(syscall.SIGTERM)
			time.Sleep(200 * time.Millisecond)
		}
		c.Wait()
		if !watchdog.Stop() {
			t.Fatalf("%d signals did not end it", signals)
		}
		if _, err := os.Stat(name); signals == 1 && (err == nil || !strings.Contains(errs.String(), "interrupted") ||
			c.ProcessState.ExitCode() != exitFailed) {
			t.Errorf("%v %v %s", err, c.ProcessState, errs.String())
		}
	}
}
