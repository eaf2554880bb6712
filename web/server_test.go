package web_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

type blocks struct{ b []trace.Block }

func (s *blocks) Next() (trace.Block, error) {
	if len(s.b) == 0 {
		return trace.Block{}, io.EOF
	}
	b := s.b[0]
	s.b = s.b[1:]
	return b, nil
}

// served starts a server of a random recording. The function that it returns sends a request to the server.
func served(t *testing.T) (*web.Server, func(method, path string, header ...string) *http.Response) {
	m := tracetest.New(tracetest.All(3, trace.CollectorParallel, trace.DepthSurvivors))
	var bs []trace.Block
	for i := range 30 {
		bs = append(bs, m.Step(i%7 == 0).Blocks...)
	}
	bs = append(bs, m.End())
	s := web.New(web.Config{Title: "x\"y.heapcam", Open: func(func(done, total int64)) (*web.Input, error) {
		return &web.Input{Source: &blocks{bs}, Close: func() {}}, nil
	}, Pull: func(_ context.Context, w io.Writer) error { _, err := io.WriteString(w, "tar"); return err }})
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); s.Close() })
	return s, func(method, path string, header ...string) *http.Response {
		r, err := http.NewRequest(method, h.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				r.Host = header[i+1]
			}
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
}

// TestAccess: a request without the token, for another host name, from the page of another site, or for a file outside
// the page is refused.
func TestAccess(t *testing.T) {
	s, ask := served(t)
	at := s.Path()
	for _, c := range []struct {
		method, path string
		header       []string
		want         int
	}{
		{"GET", "/", nil, 404},
		{"GET", "/api/overview", nil, 404},
		{"GET", at[:len(at)-2] + "/", nil, 404},
		{"GET", at, []string{"Host", "evil.example"}, 403},
		{"GET", at, []string{"Host", "127.0.0.1.evil.example:80"}, 403},
		{"GET", at, []string{"Host", "localhost:1234"}, 200},
		{"GET", at, []string{"Host", "[::1]:1234"}, 200},
		{"GET", at + "main.js", nil, 200},
		{"GET", at + "../web.go", nil, 307},
		{"GET", at + "%2e%2e/web.go", nil, 307},
		{"POST", at + "api/freeze", nil, 403},
		{"POST", at + "api/freeze", []string{"X-Heapcam", "1"}, 422},
		{"POST", at + "api/overview", []string{"X-Heapcam", "1"}, 405},
		{"GET", at + "api/pull", nil, 200},
		{"GET", at + "api/group?at=9999", nil, 404},
		{"GET", at + "api/group?at=nonsense", nil, 422},
		{"GET", at + "api/group?by=nosuch(", nil, 422},
		{"GET", at + "api/group?path=%7B", nil, 422},
		{"GET", at + "api/export?format=exe", nil, 422},
	} {
		r := ask(c.method, c.path, c.header...)
		if r.StatusCode != c.want {
			t.Errorf("%s %s %v: %s, not %d", c.method, c.path, c.header, r.Status, c.want)
		}
		if p := r.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") ||
			strings.Contains(p, "unsafe") {
			t.Errorf("%s: policy %q", c.path, p)
		}
		if r.Header.Get("X-Content-Type-Options") != "nosniff" || r.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", c.path, r.Header)
		}
	}
	if d := ask("GET", at+"api/pull").Header.Get("Content-Disposition"); d != `attachment; filename="x_y.heapcam"` {
		t.Errorf("the file of a pull is named %s", d)
	}
}

// TestSelfContained: the page loads nothing from elsewhere, holds no inline script or style, and stays small.
func TestSelfContained(t *testing.T) {
	s, ask := served(t)
	size := 0
	for _, f := range []string{"", "style.css", "main.js", "lib.js", "hero.js",
		"overview.js", "state.js", "diff.js", "trends.js",
		"leaks.js", "coverage.js", "glossary.js", "glossary.json", "charts.js",
		"tree.js", "ask.js", "vendor/uplot.js", "vendor/uplot.css"} {
		r := ask("GET", s.Path()+f, "Accept-Encoding", "gzip")
		packed, _ := io.ReadAll(r.Body)
		size += len(packed)
		r = ask("GET", s.Path()+f, "Accept-Encoding", "identity")
		b, _ := io.ReadAll(r.Body)
		text := strings.ReplaceAll(string(b), "http://www.w3.org/", "")
		if r.StatusCode != 200 || strings.Contains(text, "http://") ||
			strings.Contains(text, "https://") && !strings.HasPrefix(f, "vendor/") ||
			strings.Contains(text, "innerHTML =") && !strings.HasPrefix(f, "vendor/") {
			t.Errorf("%s: %s, or something in it comes from elsewhere or is made as markup", f, r.Status)
		}
		if f == "" &&
			(strings.Contains(text, "<style") || strings.Contains(text, "<script>") ||
				strings.Contains(text, "onclick")) {
			t.Error("the page holds a script or a style")
		}
	}
	if size > 500<<10 {
		t.Errorf("the page takes %d bytes, 500 KiB are allowed", size)
	}
	t.Logf("the page takes %d bytes", size)
}

// TestAnswers: the overview and a grouping are complete, computed and from the cache.
func TestAnswers(t *testing.T) {
	s, ask := served(t)
	for range 2 {
		var v web.Overview
		if err := json.NewDecoder(ask("GET", s.Path()+"api/overview").Body).Decode(&v); err != nil || v.Report == nil ||
			len(v.Report.Collections) == 0 || len(v.Headlines) == 0 {
			t.Fatalf("%v: %+v", err, v)
		}
		var g struct {
			GC   uint64
			Tree struct {
				Bytes    uint64
				Count    int
				Children []struct{ Bytes uint64 }
			}
		}
		if err := json.NewDecoder(ask("GET", s.Path()+"api/group?by=type").Body).Decode(&g); err != nil {
			t.Fatal(err)
		}
		sum := uint64(0)
		for _, c := range g.Tree.Children {
			sum += c.Bytes
		}
		if sum != g.Tree.Bytes || sum == 0 || g.Tree.Count != len(g.Tree.Children) {
			t.Errorf("%+v", g)
		}
	}
}
