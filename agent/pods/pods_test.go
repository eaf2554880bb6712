package pods

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/trace"
)

const (
	orders = "0a1b2c3d-1111-2222-3333-444455556666"
	db     = "1a1b2c3d-1111-2222-3333-444455556666"
	bare   = "2a1b2c3d-1111-2222-3333-444455556666"
	secret = "t0ken"
)

// server answers as the API server does, over TLS, and counts requests. The client trusts it, and has a clock of its
// own.
func server(t *testing.T, answer http.HandlerFunc) (*Client, *atomic.Int32, *time.Time, *bytes.Buffer) {
	t.Helper()
	asked, clock, log := new(atomic.Int32), new(time.Time), new(bytes.Buffer)
	*clock = time.Unix(1e9, 0)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, b := range map[string][]byte{"token": []byte(secret + "\n"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := New(Config{Server: s.URL, Token: filepath.Join(dir, "token"), CA: filepath.Join(dir, "ca.crt"), Node: "n1",
		Log: zerolog.New(log)})
	c.now = func() time.Time { return *clock }
	return c, asked, clock, log
}

func golden(t testing.TB) []byte {
	b, err := os.ReadFile("testdata/pods.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAttributes: annotations win over labels, labels over owners; what a pod may not say is not taken.
func TestAttributes(t *testing.T) {
	b := golden(t)
	c, asked, clock, log := server(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/pods" || q.Get("fieldSelector") != "spec.nodeName=n1" ||
			q.Get("resourceVersion") != "0" || r.Header.Get("Authorization") != "Bearer "+secret ||
			!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		_, _ = w.Write(b)
	})
	for uid, want := range map[string]map[string]string{
		orders: {trace.AttrService: "orders-eu", trace.AttrVersion: "1.4.2", trace.AttrNamespace: "shop-eu",
			trace.AttrEnv: "prod", trace.AttrPod: "orders-7d4b9c6f5d-x2kfq", trace.AttrK8sNS: "shop",
			trace.AttrDeployment: "orders"},
		db:        {trace.AttrService: "db", trace.AttrPod: "db-0", trace.AttrK8sNS: "shop"},
		bare:      {trace.AttrPod: "bare", trace.AttrK8sNS: "default"},
		"unknown": nil, "": nil,
	} {
		if got := c.Attributes(uid); !maps.Equal(got, want) {
			t.Errorf("%s: %v", uid, got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d listings for pods of one", n)
	}
	*clock = clock.Add(anew)
	c.Attributes(orders)
	if n := asked.Load(); n != 1 {
		t.Errorf("a listing for a pod that is known")
	}
	c.Attributes("new")
	if n := asked.Load(); n != 2 {
		t.Errorf("%d listings after a new pod", n)
	}
	if log.Len() != 0 {
		t.Errorf("%s", log)
	}
}

// TestRefusals: whatever the server does, there is an answer in time, no JVM has wrong attributes, the next request
// waits, and the token is in no line of the log.
func TestRefusals(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the token went to another server: %v", r.Header)
	}))
	defer elsewhere.Close()
	b := golden(t)
	for name, answer := range map[string]http.HandlerFunc{
		"403": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) },
		"500": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b[:len(b)/2]) },
		"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"a list":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[1]")) },
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, `{"items":[{"metadata":{"uid":"`)
			for text := strings.Repeat("x", 1<<16); err == nil; {
				_, err = io.WriteString(w, text)
			}
		},
		"many": func(w http.ResponseWriter, _ *http.Request) {
			_, err := io.WriteString(w, `{"items":[`)
			for i := 0; err == nil && i < 1<<20; i++ {
				_, err = fmt.Fprintf(w, `{"metadata":{"uid":"%d"}},`, i)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, asked, clock, log := server(t, answer)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					if got := c.Attributes(orders); got != nil {
						t.Errorf("%v", got)
					}
				})
			}
			all.Wait()
			if n := asked.Load(); n != 1 {
				t.Errorf("%d requests at once", n)
			}
			*clock = clock.Add(afterFailure)
			c.Attributes(orders)
			if n := asked.Load(); n != 2 {
				t.Errorf("%d requests after half a minute", n)
			}
			if n := strings.Count(log.String(), "\n"); n != 1 || strings.Contains(log.String(), secret) {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// TestDistrusted: a server that no certificate of the file vouches for gets no token.
func TestDistrusted(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	another, err := x509.CreateCertificate(rand.Reader, &made, &made, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"no certificate": []byte("none"),
		"another": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: another})} {
		c, asked, _, log := server(t, func(http.ResponseWriter, *http.Request) {})
		if err := os.WriteFile(c.cfg.CA, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Attributes(orders) != nil || asked.Load() != 0 || log.Len() == 0 {
			t.Errorf("%s: %d requests, %s", name, asked.Load(), log)
		}
	}
}

// TestInCluster: outside of a pod, and without the node's name, an error says what is missing.
func TestInCluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := InCluster(zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Error(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	if _, err := InCluster(zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "HEAPCAM_NODE_NAME") {
		t.Error(err)
	}
	t.Setenv("HEAPCAM_NODE_NAME", "n1")
	c, err := InCluster(zerolog.Nop())
	if err == nil || !strings.Contains(err.Error(), "service account") || c.Server != "https://[fd00::1]:443" {
		t.Errorf("%+v: %v", c, err)
	}
}

// FuzzDecode: whatever a server answers, there are no more pods than the limit, and their attributes are clean.
func FuzzDecode(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte(`{"items":[{"metadata":{"uid":"a","labels":{"app.kubernetes.io/name":"a\nb"}}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, _ := decode(bytes.NewReader(b))
		if len(all) > maxPods {
			t.Fatal(len(all))
		}
		for _, a := range all {
			for k, v := range a {
				if v != trace.CleanAttr(v) || ofNode[k] && k != trace.AttrPod && k != trace.AttrK8sNS {
					t.Fatalf("%s=%q", k, v)
				}
			}
		}
	})
}
