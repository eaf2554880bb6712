package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/jvms"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/config"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestOwnJVM runs the program as the user of a recorded JVM and as another user, in a user namespace of their own as
// well, where each is root: pause, resume and detach work for the one, and for the other there is no such JVM.
func TestOwnJVM(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not run: callers of other users (needs root)")
	}
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short, and others must come by
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	const owner, stranger = 61001, 61002
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	program, rings := filepath.Join(dir, "heapcam"), filepath.Join(dir, "rings")
	if err := errors.Join(err, os.WriteFile(program, b, 0o755), os.Chmod(dir, 0o755), os.Mkdir(rings, 0o700),
		os.Chown(rings, owner, owner)); err != nil {
		t.Fatal(err)
	}
	java := exec.Command("sleep", "600")
	java.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { java.Process.Kill(); java.Wait() })
	pid := strconv.Itoa(java.Process.Pid)
	p, err := ringtest.Create(rings, ringtest.Config{PID: uint32(java.Process.Pid), Starting: true, Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := errors.Join(os.Chown(p.Path, owner, owner), p.State(shmring.StateRecording, ""), p.Ready()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Commit(tracetest.New(tracetest.Config{Seed: 1}).Step(true).Blocks...); err != nil {
		t.Fatal(err)
	}
	a, ctx, sock := serveAgent(t, dir, rings)
	as := func(uid uint32, apart bool, args ...string) (code int, said string) {
		t.Helper()
		c := exec.Command(program, args...)
		if apart {
			c = exec.Command("unshare", append([]string{"--user", "--map-root-user", program}, args...)...)
		}
		c.Dir = "/"
		c.Env = append(os.Environ(), "HEAPCAM_SOCKET="+sock, "HOME=/nonexistent", "HEAPCAM_OUT=/nonexistent")
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		b, err := c.CombinedOutput()
		if c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), string(b)
	}
	expect := func(uid uint32, apart bool, code int, want string, args ...string) {
		t.Helper()
		if got, said := as(uid, apart, args...); got != code || !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%v as %d (apart: %v): %d, want %d and %q: %s", args, uid, apart, got, code, want, said)
		}
	}
	until := func(what string, f func() bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: waited in vain: %+v", what, a.Status())
			}
		}
	}
	until("a recording", func() bool { st := a.Status(); return len(st) == 1 && st[0].Collections > 0 })
	paused := func() uint32 { return p.Peek32(shmring.OffPause) }

	apart := []bool{false, true}
	if err := (&exec.Cmd{Path: "/usr/bin/unshare", Args: []string{"unshare", "--user", "--map-root-user", "true"},
		SysProcAttr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}}}).Run(); err != nil {
		t.Logf("not run: in user namespaces (%v)", err)
		apart = apart[:1]
	}
	for _, ns := range apart {
		for _, verb := range []string{"pause", "resume", "detach"} {
			expect(stranger, ns, exitNotFound, `no recorded JVM of this user has that name; only root`, verb, pid)
			expect(stranger, ns, exitNotFound, `no recorded JVM of this user has that name; only root`,
				verb, "4000000")
			expect(stranger, ns, 0, `0 JVMs`, verb, "--all")
		}
		if paused() != 0 || p.Peek32(shmring.OffDetach) != 0 {
			t.Fatal("a stranger has stopped the recording")
		}
		if _, said := as(stranger, ns, "status"); strings.Contains(said, "sleep") || strings.Contains(said, pid) {
			t.Errorf("a stranger gets: %s", said)
		}
		expect(owner, ns, 0, `paused sleep \(pid `+pid, "pause", pid)
		if paused() != shmring.PauseOwner {
			t.Errorf("not paused: %d", paused())
		}
		p.State(shmring.StatePaused, "")
		until("paused", func() bool { return a.Status()[0].Phase == session.Paused })
		expect(owner, ns, 0, `sleep-`+pid+`\S* +paused(.|\n)*: requested by uid 61001`, "status")
		expect(owner, ns, 0, `resumed sleep`, "resume", "sleep")
		if paused() != 0 {
			t.Errorf("still paused: %d", paused())
		}
		p.State(shmring.StateRecording, "")
		expect(owner, ns, exitDenied, `root and the members of the group`, "attach", pid)
		expect(owner, ns, exitDenied, `root and the members of the group`, "reload")
	}
	atEnd := p.EndWhenAsked()
	expect(owner, false, 0, `stopped recording sleep`, "detach", pid)
	if p.Peek32(shmring.OffDetach) != 1 {
		t.Fatal("not detached")
	}
	if err := <-atEnd; err != nil {
		t.Fatal(err)
	}
	until("the end", func() bool { return a.Status()[0].Phase == session.EndedPhase })
	for _, uid := range []uint32{owner, 0} {
		expect(uid, false, 0, `sleep-`+pid+`\S* +ended(.|\n)*: detached by uid 61001`, "status")
	}
	staysDetached(ctx, t, a, pid)
}

// serveAgent runs an agent over rings, and its API on a socket in dir.
func serveAgent(t *testing.T, dir, rings string) (*agent.Agent, context.Context, string) {
	t.Helper()
	a, err := agent.New(agent.Config{Out: filepath.Join(dir, "out"), Watch: []string{rings}, MaxTraceSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	sock := filepath.Join(dir, "s")
	go func() { ended <- a.Run(ctx) }()
	go func() { ended <- api.New(a, api.Config{Kind: kindOf}).Serve(ctx, sock) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	return a, ctx, sock
}

// staysDetached: discovery of an agent that comes later leaves a detached JVM alone, and says why.
func staysDetached(ctx context.Context, t *testing.T, a *agent.Agent, pid string) {
	t.Helper()
	st := a.Status()[0]
	later, err := agent.New(agent.Config{Out: a.Out()})
	if err != nil {
		t.Fatal(err)
	}
	attached := 0
	d := jvms.NewDiscovery(jvms.DiscoveryConfig{
		Attach:     func(context.Context, jvms.JVM, string) error { attached++; return nil },
		Decide:     func(config.JVM) (string, string, bool) { return "", "", true },
		Wait:       func() (jvms.Unrecorded, bool) { return jvms.Unrecorded{}, false },
		TakeOver:   func(context.Context, jvms.JVM) { attached++ },
		Recorded:   func(jvms.JVM) bool { return false },
		DetachedBy: func(j jvms.JVM) string { return later.DetachedBy(j.PID, j.StartTicks, j.UID) },
	})
	j := jvms.JVM{PID: st.PID, UID: st.UID, StartTicks: st.StartTicks, ID: jvms.ID(st.PID, st.StartTicks), Name: "x",
		PerfData: true, Collector: "G1", Major: 17, Recorded: true}
	d.Consider(ctx, j)
	if o := d.Unrecorded(); attached > 0 || len(o) != 1 || o[0].Why != "detached" ||
		o[0].Reason != "detached by uid 61001" || !strings.Contains(o[0].Remedy, "attach "+pid) {
		t.Errorf("%d attached, %+v", attached, o)
	}
}
