package api

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/profiles"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/agent/upload"
)

// recorder is a Recorder that records nothing: what it offers lies below out.
type recorder struct{ out string }

func (r recorder) Out() string                             { return r.out }
func (recorder) Status() []session.Status                  { return nil }
func (recorder) Others() []Other                           { return nil }
func (recorder) Self() quota.Self                          { return quota.Self{} }
func (recorder) Spool() *spool.Status                      { return nil }
func (recorder) Upload() *upload.Status                    { return nil }
func (recorder) Pushes() *profiles.Status                  { return nil }
func (recorder) Rescan()                                   {}
func (recorder) Records(int) bool                          { return false }
func (recorder) DetachFor(_ Caller, _ string) (int, error) { return 0, nil }
func (recorder) PauseFor(_ Caller, _ string) (int, error)  { return 0, nil }
func (recorder) ReferencesFor(context.Context, Caller, string, time.Duration) (session.References, error) {
	return session.References{}, nil
}
func (recorder) ResumeFor(_ Caller, _ string) (int, error) { return 0, nil }

// serveHere serves on a socket that every user of this host can reach, until the test is over.
func serveHere(t *testing.T, s *Server) (sock string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hc") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	sock = filepath.Join(dir, "s")
	run(t, func(ctx context.Context) error { return s.Serve(ctx, sock) })
	t.Cleanup(func() { os.RemoveAll(dir) })
	wait(t, func() bool { c, err := Dial(sock); return err == nil && c != nil })
	return sock
}

// run runs serve until the test is over.
func run(t *testing.T, serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func wait(t *testing.T, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
	}
}

// logBuffer is a log that a test may read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }
