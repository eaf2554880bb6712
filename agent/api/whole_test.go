package api

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore"
)

func container(t *testing.T) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, n := range []string{"00000001.hcr", ringstore.ManifestName} {
		if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o600, Size: 700}); err != nil {
			t.Fatal(err)
		}
		w.Write(make([]byte, 700))
	}
	w.Close()
	return b.String()
}

// TestPullChecksBody: a pull is whole or fails, whatever answers with 200, and a server that falls silent ends it.
func TestPullChecksBody(t *testing.T) {
	whole := container(t)
	for _, c := range []struct {
		name, body, want string
		hang             bool
	}{
		{"whole", whole, "", false},
		{"empty", "", "not a whole recording", false},
		{"JSON", "{}", "not a whole recording", false},
		{"random", strings.Repeat("\x93Ax", 9999), "not a whole recording", false},
		{"cut in a file", whole[:1000], "not a whole recording", false},
		{"cut behind a file", whole[:1536], "not a whole recording", false},
		{"no answer", "", "sent nothing for", true},
		{"silent in the body", whole[:1000], "sent nothing for", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			over := make(chan struct{})
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Transfer-Encoding", "identity")
				if c.body != "" || !c.hang {
					io.WriteString(w, c.body)
					w.(http.Flusher).Flush()
				}
				if c.hang {
					<-over
				}
			}))
			defer srv.Close()
			defer close(over)
			cl := &Client{base: srv.URL, http: srv.Client(), sign: func(*http.Request) {},
				silent: 100 * time.Millisecond}
			if !c.hang {
				cl.silent = 0
			}
			var got bytes.Buffer
			err := cl.Pull(context.Background(), PullRequest{ID: "A"}, &got)
			switch {
			case c.want == "" && (err != nil || got.String() != whole):
				t.Errorf("%v, %d bytes", err, got.Len())
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
