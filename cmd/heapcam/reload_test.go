//go:build unix

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestReloadLimits changes the limits of a recording that is under way, in a real agent: by SIGHUP and by the verb,
// up, down and away. What needs a restart is refused as a whole.
func TestReloadLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file("heapcam.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("overhead: {cpu: 2%, pause: 10ms}\nagent_max_memory: 512MiB\n")
	short, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	sock := filepath.Join(short, "s")
	run := exec.Command("heapcam", "agent", "--config", file("heapcam.yaml"), "--socket", sock, "--shm-dir", dir,
		"--out", file("out"))
	log, err := os.Create(file("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	run.Stderr = log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Process.Signal(os.Interrupt); run.Wait() })
	status := func() (r api.StatusReply) {
		b, _ := exec.Command("heapcam", "status", "--json", "--socket", sock, "--out", file("out")).Output()
		_ = json.Unmarshal(b, &r)
		return r
	}
	until := func(what string, f func(api.StatusReply) bool) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			r := status()
			if f(r) {
				return
			}
			if time.Now().After(end) {
				said, _ := os.ReadFile(log.Name())
				t.Fatalf("%s: waited in vain: %+v\n%s", what, r, said)
			}
		}
	}
	until("an agent", func(r api.StatusReply) bool { return r.Agent })
	p, err := ringtest.Create(filepath.Join(dir, ringFolder()), ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Commit(tracetest.New(tracetest.Config{Seed: 1}).Step(true).Blocks...); err != nil {
		t.Fatal(err)
	}
	until("the limits of the file", func(r api.StatusReply) bool {
		return len(r.JVMs) == 1 && r.JVMs[0].Budget != nil && r.JVMs[0].Budget.CPU == 0.02 &&
			r.JVMs[0].Budget.PauseNS == 1e7 && r.JVMs[0].Collections == 1 &&
			r.Self.MaxMemory == 512<<20
	})
	began := status().JVMs[0].Since
	room := func() uint64 { return p.Peek64(shmring.OffEpochMax) }
	until("room for an epoch", func(api.StatusReply) bool { return room() > 600e6 }) // 0.9 × 2 % of a minute

	write("overhead: {cpu: 1%, pause: 5ms}\nagent_max_memory: 256MiB\nagent_max_cpu: 40%\nmax_write_rate: 1MiB\n")
	if err := run.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until("what SIGHUP reloads", func(r api.StatusReply) bool {
		s := r.JVMs[0]
		return s.Budget.CPU == 0.01 && s.Budget.PauseNS == 5e6 && s.Budget.WriteRate == 1<<20 &&
			r.Self.MaxMemory == 256<<20 && r.Self.MaxCPU == 0.4 &&
			strings.Contains(s.LastSwitch, "limits were changed: overhead_cpu 1%, overhead_pause 5ms, "+
				"max_write_rate 1048576, agent_max_cpu 40%")
	})
	until("less room for an epoch", func(api.StatusReply) bool { return room() < 600e6 && room() > 0 })

	verb := func(code int, want string) {
		t.Helper()
		c := exec.Command("heapcam", "reload", "--socket", sock)
		b, _ := c.CombinedOutput()
		if c.ProcessState.ExitCode() != code || !strings.Contains(string(b), want) {
			t.Errorf("reload: %d %s, want %d %s", c.ProcessState.ExitCode(), b, code, want)
		}
	}
	write("overhead: {cpu: 9%}\nmax_trace_size: 2GiB\n")
	verb(exitUsage, "because these changes need a restart (`heapcam service restart`): max_trace_size")
	write("agent_max_memory: 1MiB\n")
	verb(exitUsage, "agent_max_memory 1.0 MiB: it must be 0 (unlimited) or at least 64.0 MiB")
	if b := status().JVMs[0].Budget; b.CPU != 0.01 {
		t.Errorf("after a reload that was refused: %+v", b)
	}
	write("")
	verb(0, "reloaded its configuration")
	until("no limits", func(r api.StatusReply) bool {
		s := r.JVMs[0]
		return s.Budget.CPU == 0 && s.Budget.PauseNS == 0 && s.Budget.WriteRate == 0 && r.Self.MaxMemory == 0 &&
			r.Self.MaxCPU == 0 && room() == 0
	})
	if s := status().JVMs[0]; !s.Since.Equal(began) || s.Phase != session.Recording {
		t.Errorf("the recording did not go on: %+v", s)
	}
}
