//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent"
	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestRemoteStatus asks the agent of another host for its status, as a user does: with the wrong token, with one,
// as JSON; and for nothing of this host.
func TestRemoteStatus(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "host"},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err1 := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	kb, err2 := x509.MarshalECPrivateKey(key)
	token := strings.Repeat("t0ken", 8)
	if err := errors.Join(err1, err2,
		os.WriteFile(file("cert"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(file("key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: kb}), 0o600),
		os.WriteFile(file("tokens"), []byte("ops status "+token+"\n"), 0o600),
		os.WriteFile(file("token"), []byte(token+"\n"), 0o600),
		os.WriteFile(file("wrong"), []byte(strings.Repeat("wrong", 8)), 0o600),
		os.Mkdir(file("rings"), 0o700)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	a, err := agent.New(agent.Config{Out: file("out"), Watch: []string{file("rings")}, MaxTraceSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{}, 2)
	go func() { a.Run(ctx); ended <- struct{}{} }()
	go func() {
		api.New(a, api.Config{Kind: kindOf}).ServeRemote(ctx, api.RemoteConfig{Listen: address, Cert: file("cert"),
			Key: file("key"), Tokens: file("tokens")})
		ended <- struct{}{}
	}()
	t.Cleanup(func() { cancel(); <-ended; <-ended })
	p, err := ringtest.Create(file("rings"), ringtest.Config{Mapped: true})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Commit(tracetest.New(tracetest.Config{Seed: 1}).Step(true).Blocks...); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) (code int, out, said string) {
		t.Helper()
		c := exec.Command("heapcam", append([]string{"status", "--remote", "https://" + address, "--ca",
			file("cert")}, args...)...)
		c.Env = append(os.Environ(), "HEAPCAM_OUT="+file("nothing"))
		var o, e bytes.Buffer
		c.Stdout, c.Stderr = &o, &e
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), o.String(), e.String()
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		code, out, said := ask("--token-file", file("token"))
		if code == 0 && strings.Contains(out, "  recording  ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d %s %s", code, out, said)
		}
	}
	if code, out, _ := ask("--token-file", file("token"), "--json"); code != 0 ||
		!strings.Contains(out, `"schema": "heapcam.status/1"`) ||
		!strings.Contains(out, `"phase": "recording"`) {
		t.Errorf("%d %s", code, out)
	}
	if code, out, said := ask("--token-file", file("wrong")); code != exitDenied || out != "" || said == "" {
		t.Errorf("with the wrong token: %d %q %q", code, out, said)
	}
	none := file("no-token")
	if code, _, said := ask("--token-file", none); code != exitNotFound ||
		!strings.Contains(said, none+": no such file") || !strings.Contains(said, "name a file") {
		t.Errorf("without that file: %d %q", code, said)
	}
	if code, _, said := ask(); code != exitUsage || !strings.Contains(said, "--remote needs --token-file") {
		t.Errorf("without a token: %d %q", code, said)
	}
	if code, _, said := ask("--token-file", file("token"), "--out", dir); code != exitUsage ||
		!strings.Contains(said, "about this one") {
		t.Errorf("with --out: %d %q", code, said)
	}
}

// TestRemotePassword: no error repeats a password that somebody put into the address.
func TestRemotePassword(t *testing.T) {
	for _, address := range []string{
		"https://me:s3cret@db7:9465", "http://me:s3cret@db7", "https://me:s3/c@ret@db7:9465", "me:s3cret@db7:x",
		"https://me:s3cret@db7:9465/path", "https://me:%zzs3cret@db7",
	} {
		_, err := (&remoteOptions{address: address, cert: "c", key: "k"}).dial()
		if err == nil || strings.Contains(err.Error(), "s3") || !strings.Contains(err.Error(), "db7") ||
			exitCode(err) != exitUsage {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestBadLink: a folder for recordings that is a broken link is refused, with what it is.
func TestBadLink(t *testing.T) {
	dir := t.TempDir()
	to := func(target, name string) string {
		path := filepath.Join(dir, name)
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for path, want := range map[string]string{
		to("nowhere", "dangling"):               "is a symbolic link to nowhere, which does not exist",
		filepath.Join(dir, "dangling", "below"): "is a symbolic link to nowhere, which does not exist",
		to("self", "self"):                      "leads back to itself",
		to(dir, "good"):                         "",
		filepath.Join(dir, "good", "new"):       "",
	} {
		if got := badLink(path); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q", path, got)
		}
	}
}
