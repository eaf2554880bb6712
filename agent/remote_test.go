package agent

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/api/apitest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestRemote offers a recording over HTTPS: to tokens within their scope and to certificates, and to nobody else; what
// is pulled is whole, within its size, and stands in the log with its caller.
func TestRemote(t *testing.T) {
	dir := t.TempDir()
	rings := filepath.Join(dir, "rings")
	if err := os.Mkdir(rings, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a, err := New(Config{Out: filepath.Join(dir, "out"), Watch: []string{rings},
		Log: zerolog.New(zerolog.SyncWriter(&log)), MaxTraceSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, a: a, dir: rings}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	p, err := ringtest.Create(rings, ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	model := tracetest.New(tracetest.All(1, trace.CollectorSerial, trace.DepthFull))
	for range 10 { // each time all of it is in files: an agent that comes late makes large ones
		for range 8 {
			r.play(p, model, 10)
		}
		wait(t, func() bool { return p.Peek64(shmring.OffTail) == p.Head() }, a)
	}
	ca, foreign := apitest.NewAuthority(t, dir, "ca"), apitest.NewAuthority(t, dir, "foreign")
	ca.Issue("host", []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth})
	ca.Issue("laptop", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth})
	foreign.Issue("stranger", []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth})
	secret := map[string]string{}
	var lines strings.Builder
	for name, scope := range map[string]string{"all": "status,pull", "looks": "status", "pulls": "pull"} {
		secret[name] = strings.Repeat(name, 32)
		fmt.Fprintf(&lines, "%s %s %s # of a test\n", name, scope, secret[name])
	}
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := api.RemoteConfig{Listen: apitest.FreeAddress(t), Cert: ca.File("host.pem"), Key: ca.File("host.key"),
		Tokens: tokens, ClientCA: ca.File("ca.pem"), MaxPull: 100 << 10}
	srv := api.New(a, api.Config{Log: a.cfg.Log})
	if err := srv.ServeRemote(ctx, api.RemoteConfig{Listen: cfg.Listen, Cert: cfg.Cert, Key: cfg.Key}); err == nil {
		t.Fatal("served to everybody")
	}
	sctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- srv.ServeRemote(sctx, cfg) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	wait(t, func() bool { c, err := net.Dial("tcp", cfg.Listen); return err == nil && c.Close() == nil })

	for _, c := range []remoteCaller{
		{"all", api.RemoteOptions{Token: secret["all"]}, true, true},
		{"looks", api.RemoteOptions{Token: secret["looks"]}, true, false},
		{"pulls", api.RemoteOptions{Token: secret["pulls"]}, false, true},
		{"wrong token", api.RemoteOptions{Token: strings.Repeat("x", 64)}, false, false},
		{"part of a token", api.RemoteOptions{Token: secret["all"][1:]}, false, false},
		{"wrong token beside a certificate",
			api.RemoteOptions{Token: "x", Cert: ca.File("laptop.pem"), Key: ca.File("laptop.key")}, false, false},
		{"certificate", api.RemoteOptions{Cert: ca.File("laptop.pem"), Key: ca.File("laptop.key")}, true, true},
		{"certificate of another CA",
			api.RemoteOptions{Cert: foreign.File("stranger.pem"), Key: foreign.File("stranger.key")}, false, false},
		{"certificate of a server", api.RemoteOptions{Cert: ca.File("host.pem"), Key: ca.File("host.key")},
			false, false},
		{"nothing", api.RemoteOptions{}, false, false},
	} {
		c.o.CA = ca.File("ca.pem")
		checkRemote(t, a, cfg, c)
	}
	if cl, err := api.DialRemote("https://"+cfg.Listen, api.RemoteOptions{Token: secret["all"]}); err != nil ||
		second(cl.Status(ctx)) == nil {
		t.Errorf("a client that does not know the CA trusted the host: %v", err)
	}
	for _, bad := range []string{"http://" + cfg.Listen, cfg.Listen, "https://", "https://x/y"} {
		if _, err := api.DialRemote(bad, api.RemoteOptions{}); err == nil {
			t.Errorf("%s is taken for an address", bad)
		}
	}
	text := log.String()
	for _, want := range []string{`"audit":"pull","client":"token pulls 127.0.0.1:`,
		`"audit":"pull","client":"certificate \"laptop\"`, `"audit":"status","client":"token pulls`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	for _, s := range secret {
		if strings.Contains(text, s) {
			t.Error("a token stands in the log")
		}
	}
}

// remoteCaller is who calls from another host, and what that may do.
type remoteCaller struct {
	name         string
	o            api.RemoteOptions
	status, pull bool
}

// checkRemote asks for every verb as c and compares the answers with what c may do. a records one JVM.
func checkRemote(t *testing.T, a *Agent, cfg api.RemoteConfig, c remoteCaller) {
	t.Helper()
	id := a.Status()[0].ID
	cl, err := api.DialRemote("https://"+cfg.Listen, c.o)
	if err != nil {
		t.Fatal(err)
	}
	st, err := cl.Status(t.Context())
	if (err == nil) != c.status || c.status && (len(st.JVMs) != 1 || st.JVMs[0].ID != id) {
		t.Errorf("%s: status: %+v %v", c.name, st, err)
	}
	var b bytes.Buffer
	if err = cl.Pull(t.Context(), api.PullRequest{ID: id}, &b); (err == nil) != c.pull {
		t.Errorf("%s: pull: %v", c.name, err)
	}
	if c.pull {
		file := filepath.Join(t.TempDir(), "p.heapcam")
		if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		rec, err := ringstore.OpenRecording(file)
		if err != nil || len(rec.Files) == 0 || len(rec.Problems) > 0 {
			t.Fatalf("%s: the pull is not whole: %v", c.name, err)
		}
		rec.Close()
		if have := a.Status()[0].TraceBytes; b.Len() > 600<<10 || have < 700<<10 {
			t.Errorf("%s: %d bytes of %d were pulled, the limit is %d and a file more", c.name, b.Len(),
				have, cfg.MaxPull)
		}
	}
	for what, err := range map[string]error{ // nothing can be changed from afar
		"pause":  second(cl.Pause(t.Context(), api.DetachRequest{All: true})),
		"detach": second(cl.Detach(t.Context(), api.DetachRequest{All: true})),
		"attach": second(cl.Attach(t.Context(), api.AttachRequest{JVM: "1"})),
		"reload": cl.Reload(t.Context()),
	} {
		var re *api.RemoteError
		if err == nil || c.status && (!errors.As(err, &re) || re.Kind != api.Denied) {
			t.Errorf("%s: %s: %v", c.name, what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
