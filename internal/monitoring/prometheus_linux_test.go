package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/metrics"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/shmring/ringtest"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

const (
	rules     = "../../packaging/prometheus/heapcam.rules.yml"
	dashboard = "../../packaging/grafana/heapcam.json"
)

func TestRulesAndDashboard(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	promtool, err2 := exec.LookPath("promtool")
	if err != nil || err2 != nil {
		t.Skip("not run: dashboard and alerts against a real Prometheus (no prometheus, promtool)")
	}
	if out, err := exec.Command(promtool, "check", "rules", rules).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
	tool, err := filepath.Abs("../../bin/heapcam")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tool); err != nil {
		t.Fatal("bin/heapcam is not there: make build")
	}
	dir := t.TempDir()
	agentAddr, promAddr := freeAddr(t), freeAddr(t)
	run(t, tool, "agent", "--metrics", agentAddr, "--socket", filepath.Join(dir, "s"), "--out",
		filepath.Join(dir, "out"),
		"--shm-dir", dir)
	rings := filepath.Join(dir, fmt.Sprintf("heapcam-%d", os.Getuid()))
	await(t, "the agent's metrics", func() bool {
		_, err := get("http://" + agentAddr + "/healthz")
		return err == nil
	})
	record(t, rings)

	m, err := get("http://" + agentAddr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(m)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	abs, err := filepath.Abs(rules)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: "+
		"[%q]\nscrape_configs:\n- job_name: heapcam\n  static_configs:\n  - targets: [%q, %q]\n", abs, agentAddr,
		leaking(t))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, prometheus, "--config.file", conf, "--storage.tsdb.path", filepath.Join(dir, "tsdb"), "--web.listen-address",
		promAddr, "--log.level=error", "--enable-feature=native-histograms")
	await(t, "three scrapes", func() bool {
		n, err := query(promAddr, `count_over_time(heapcam_recording_up[1m]) >= 3`)
		return err == nil && n > 0
	})
	n := 0
	for what, q := range queries(t) {
		n++
		if rows, err := query(promAddr, q); err != nil || rows == 0 {
			t.Errorf("%s: %d rows, %v, of %s", what, rows, err, q)
		}
	}
	if n < 30 {
		t.Errorf("only %d queries were found", n)
	}
	// The rules themselves were evaluated, without an error.
	b, err := get("http://" + promAddr + "/api/v1/rules")
	if err != nil || strings.Count(b, `"health":"ok"`) < 10 || strings.Contains(b, `"health":"err"`) {
		t.Errorf("rules: %v %s", err, b)
	}
}

// leaking serves the metrics of an agent whose only JVM leaks.
func leaking(t *testing.T) (address string) {
	src := metrics.Source{Others: func() []api.Other { return nil }, Status: func() []session.Status {
		return []session.Status{{ID: "Shop-1", Name: "Shop", Resource: trace.Resource{trace.AttrService: "shop",
			trace.AttrVersion: "1.2"}, Verdict: &session.Verdict{Leaks: []session.Leak{{Kind: "leak",
			Class: "demo.Entry", SiteID: "00c0ffee", BytesPerSecond: 1000}}}}}
	}}
	srv := httptest.NewServer(metrics.Handler(src, func(context.Context) error { return nil }))
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

// byHistory are the alerts that compare with earlier days: TestAlertsFire has their series.
var byHistory = []string{"HeapcamNewVersionLeaks"}

// comparison is what ends the expression of an alert: without it the query gives data even while nothing is wrong.
var comparison = regexp.MustCompile(`^(.*) [<>] [0-9.]+$`)

// profileType is a type as Pyroscope names what agents push (package agent/profiles).
var profileType = regexp.MustCompile(`^memory:(inuse|alloc|survived|freed)_(space:bytes|objects:count):space:bytes$`)

// queries gives every expression of dashboard and alerts, with what stands for the dashboard's variables.
func queries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	b, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID, ProfileTypeID string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	fill := strings.NewReplacer("$instance", ".*", "$jvm", ".*", "$__rate_interval", "1m")
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			if q.ProfileTypeID != "" { // of Pyroscope
				if !profileType.MatchString(q.ProfileTypeID) || q.Expr != "" {
					t.Errorf("panel %s: %q is no profile that agents push", p.Title, q.ProfileTypeID)
				}
				continue
			}
			out["panel "+p.Title+" "+q.RefID] = fill.Replace(q.Expr)
		}
	}
	for _, a := range alerts(t) {
		m := comparison.FindStringSubmatch(a.Expr)
		if m == nil {
			t.Fatalf("%s: %s ends in no comparison with a number", a.Alert, a.Expr)
		}
		if !slices.Contains(byHistory, a.Alert) {
			out["alert "+a.Alert] = m[1]
		}
		// That the heading is there is package docs' to test.
		if !strings.HasSuffix(a.Annotations["runbook_url"], "docs/reference/alerts.md#"+strings.ToLower(a.Alert)) {
			t.Errorf("%s: runbook %q", a.Alert, a.Annotations["runbook_url"])
		}
	}
	return out
}

type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// alerts gives the alerts of the rules.
func alerts(t *testing.T) []alertRule {
	t.Helper()
	b, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	var r struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Groups) != 1 || len(r.Groups[0].Rules) < 10 {
		t.Fatalf("%s: %d groups", rules, len(r.Groups))
	}
	return r.Groups[0].Rules
}

// record plays a JVM that collects until the test ends.
func record(t *testing.T, dir string) {
	t.Helper()
	p, err := ringtest.Create(dir, ringtest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over); <-ended; p.Close() })
	m := tracetest.New(tracetest.Config{Seed: 1})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			behind, _ := p.Answer(shmring.OffSyncWanted, shmring.OffSyncDone)
			p.Commit(m.Step(i == 0 || behind > 0).Blocks...)
			p.Poke64(shmring.OffPauseNS, uint64(i)*1e6)
			p.Beat()
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	c := exec.Command(name, args...)
	var said strings.Builder
	c.Stdout, c.Stderr = &said, &said
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%.4000s", filepath.Base(name), said.String())
		}
	})
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func await(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !f(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func get(addr string) (string, error) {
	r, err := http.Get(addr)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, b)
	}
	return string(b), err
}

// query gives the number of series that an expression returns now.
func query(addr, q string) (rows int, err error) {
	b, err := get("http://" + addr + "/api/v1/query?query=" + url.QueryEscape(q))
	if err != nil {
		return 0, err
	}
	var r struct {
		Data struct{ Result []json.RawMessage }
	}
	err = json.Unmarshal([]byte(b), &r)
	return len(r.Data.Result), err
}
