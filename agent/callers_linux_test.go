package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
)

// serve runs the API of an agent; log takes its audit lines.
func (r *rig) serve(attach api.Attacher) (sock string) {
	return r.serveWith(api.Config{Attach: attach, Log: r.a.cfg.Log, Reload: func() error { return nil }})
}

func (r *rig) serveWith(cfg api.Config) (sock string) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		r.t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	sock = filepath.Join(dir, "s")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- api.New(r.a, cfg).Serve(ctx, sock) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Error(err)
		}
		os.RemoveAll(dir)
	})
	wait(r.t, func() bool { c, err := api.Dial(sock); return err == nil && c != nil })
	return sock
}

// other runs a process of another user that does nothing, and gives its pid.
func other(t *testing.T, uid uint32) uint32 {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return uint32(c.Process.Pid)
}

// ownedRing makes a ring of uid in a folder of uid, that says it is pid's.
func (r *rig) ownedRing(uid int, pid uint32) *ringtest.Producer {
	r.t.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("of-%d-%d", uid, pid))
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, uid, uid)); err != nil {
		r.t.Fatal(err)
	}
	p, err := ringtest.Create(dir, ringtest.Config{PID: pid, Starting: true, Beats: true})
	if err == nil {
		err = errors.Join(os.Chown(p.Path, uid, uid), p.State(shmring.StateRecording, ""), p.Ready())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.Close() })
	r.a.Watch(dir)
	return p
}
