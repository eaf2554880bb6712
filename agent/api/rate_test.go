package api

import (
	"context"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/heapcam/heapcam/ringstore"
)

// TestRemoteRate: all pulls of other hosts together go no faster than the rate, and who has gone is not waited for.
func TestRemoteRate(t *testing.T) {
	dir := t.TempDir()
	recorded(t, filepath.Join(dir, "x"), 512<<10)
	srv := New(recorder{dir}, Config{Log: zerolog.Nop()})
	pull := func(ctx context.Context, cl *Client) (n int64, err error) {
		var c counter
		err = cl.Pull(ctx, PullRequest{ID: "x"}, &c)
		return int64(c), err
	}

	const rate = 1 << 20 // bytes a second
	cl := offer(t, srv, dir, rate)
	begun, total := time.Now(), int64(0)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			n, err := pull(context.Background(), cl)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
		})
	}
	wg.Wait()
	took := time.Since(begun)
	least := time.Duration(float64(total-pullPiece) / rate * float64(time.Second)) // a piece goes at once
	if total < 1<<20 || took < least {
		t.Errorf("%d bytes at %d bytes a second took %v, want %v at least", total, rate, took, least)
	}

	slow := offer(t, srv, dir, 1<<10) // minutes
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { _, err := pull(ctx, slow); ended <- err }()
	wait(t, func() bool { return len(srv.pulls) == 1 })
	cancel()
	if err := <-ended; err == nil {
		t.Error("a pull of minutes was whole at once")
	}
	wait(t, func() bool { return len(srv.pulls) == 0 })
}

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

// recorded makes a recording of size bytes.
func recorded(t *testing.T, dir string, size int) {
	t.Helper()
	st, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 64 << 20, Compression: "none"},
		ringstore.Identity{Session: strings.Repeat("ab", 16), Name: "x", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if err := st.Rotate(b, ringstore.FrameInfo{Source: 1}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

// offer offers pulls at a rate to who has the token, and returns a client that has it.
func offer(t *testing.T, srv *Server, dir string, rate int64) *Client {
	t.Helper()
	dir, err := os.MkdirTemp(dir, ".remote")
	if err != nil {
		t.Fatal(err)
	}
	ca := apitest.NewAuthority(t, dir, "ca")
	ca.Issue("host", nil)
	token := strings.Repeat("all", 32)
	cfg := RemoteConfig{Listen: apitest.FreeAddress(t), Cert: ca.File("host.pem"), Key: ca.File("host.key"),
		Tokens: ca.File("tokens"), Rate: rate}
	if err := os.WriteFile(cfg.Tokens, []byte("all status,pull "+token), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, func(ctx context.Context) error { return srv.ServeRemote(ctx, cfg) })
	wait(t, func() bool { c, err := net.Dial("tcp", cfg.Listen); return err == nil && c.Close() == nil })
	cl, err := DialRemote("https://"+cfg.Listen, RemoteOptions{Token: token, CA: ca.File("ca.pem")})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}
