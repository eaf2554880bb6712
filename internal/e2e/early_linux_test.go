package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/probe"
)

// TestEarlyRequest makes a request as soon as the ring is there, of a JVM whose busy machine lets the probe's thread
// begin seconds and many collections later: it is answered all the same, once.
func TestEarlyRequest(t *testing.T) {
	t.Parallel()
	lib, err := probe.Library()
	if err != nil {
		t.Skip("not run: a request before the control thread begins (the probe is not compiled: make probe)")
	}
	dir := t.TempDir()
	so := filepath.Join(dir, "libheapcam.so")
	if err := os.WriteFile(so, lib, 0o700); err != nil {
		t.Fatal(err)
	}
	var stderr buffer
	end := filepath.Join(dir, "end")
	c := exec.Command(filepath.Join(jdk(t, 17), "bin", "java"), "-Xmx64m", "-XX:+UseSerialGC",
		"-agentpath:"+so+"=dir="+dir+",oracle=1,late=2000", "-cp", classPath(t), "Until", end, "20000", "0")
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	ring := openRing(t, dir)
	defer ring.Close()
	const offEmergency, offMethod, oracle = 328, 336, 3
	ring.WriteAt([]byte{oracle}, offMethod)
	ring.WriteAt([]byte{1}, offEmergency)
	answers := func() int { return len(oracleSum.FindAllString(stderr.String(), -1)) }
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(tail(stderr.String()))
		}
	})
	await(t, "an answer to what was requested first", func() bool { return answers() > 0 })
	time.Sleep(300 * time.Millisecond) // several turns of the thread
	if n := answers(); n != 1 || strings.Contains(stderr.String(), "no answer") {
		t.Errorf("%d answers to one request", n)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
}
