package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// parcaInUse is Parca's name of what lives: delta, since a profile has a duration.
const parcaInUse = inUse + ":delta"

// parca is a real server that scrapes.
type parca struct {
	t   *testing.T
	url string
}

// get asks the server's query service; into is what its JSON holds.
func (p *parca) get(path string, q url.Values, into any) bool {
	p.t.Helper()
	a, err := http.Get(p.url + "/api/profiles/" + path + "?" + q.Encode())
	if err != nil {
		return false
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	return a.StatusCode == http.StatusOK && json.Unmarshal(b, into) == nil
}

// startParca starts a server that scrapes an agent. There is no Debian package of it; a checkout of
// github.com/parca-dev/parca builds it: go build ./cmd/parca.
func startParca(t *testing.T, agent string, every time.Duration) *parca {
	t.Helper()
	program, err := exec.LookPath("parca")
	if err != nil {
		t.Skip("not run: profiles that a real Parca scrapes (no parca in PATH)")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "parca.yaml")
	text := fmt.Sprintf(`object_storage: {bucket: {type: FILESYSTEM, config: {directory: %s}}}
scrape_configs:
  - job_name: heapcam
    scrape_interval: %s
    http_sd_configs: [{url: "http://%s/profiles/targets", refresh_interval: 5s}]
    profiling_config:
      pprof_config:
        memory: {path: /profiles/heap}
        block: {enabled: false}
        goroutine: {enabled: false}
        mutex: {enabled: false}
        process_cpu: {enabled: false}
`, dir, every, agent)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	var log buffer
	c := exec.Command(program, "--config-path", config, "--http-address", at)
	c.Dir, c.Stdout, c.Stderr = dir, &log, &log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
		if t.Failed() {
			t.Logf("parca: %s", tail(log.String()))
		}
	})
	return &parca{t, "http://" + at}
}

// series gives the times and values of a JVM's heap; one list a series.
func (p *parca) series(service string, from time.Time) (times []time.Time, values []int64, series int) {
	var answer struct {
		Series []struct {
			Samples []struct {
				Timestamp time.Time   `json:"timestamp"`
				Value     json.Number `json:"value"`
			} `json:"samples"`
		} `json:"series"`
	}
	q := url.Values{"query": {parcaInUse + selector(service)}, "start": {from.UTC().Format(time.RFC3339)},
		"end": {time.Now().UTC().Format(time.RFC3339)}, "step": {"1s"}}
	if !p.get("query_range", q, &answer) {
		return nil, nil, 0
	}
	for _, s := range answer.Series {
		for _, x := range s.Samples {
			n, _ := x.Value.Int64()
			times, values = append(times, x.Timestamp), append(values, n)
		}
	}
	return times, values, len(answer.Series)
}

// classes gives the bytes of each class of the profile in a second.
func (p *parca) classes(service string, at time.Time) map[string]int64 {
	p.t.Helper()
	var answer struct {
		Pprof []byte `json:"pprof"`
	}
	q := url.Values{"mode": {"MODE_MERGE"}, "merge.query": {parcaInUse + selector(service)},
		"merge.start": {at.UTC().Format(time.RFC3339)},
		"merge.end":   {at.Add(time.Second).UTC().Format(time.RFC3339)}, "reportType": {"REPORT_TYPE_PPROF"}}
	if !p.get("query", q, &answer) {
		p.t.Fatalf("no profile of %s at %v", service, at)
	}
	x, err := profile.Parse(bytes.NewReader(answer.Pprof))
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[string]int64{}
	for _, s := range x.Sample {
		out[s.Location[0].Line[0].Function.Name] += s.Value[0]
	}
	return out
}

// TestParca: a real Parca finds two real JVMs by the agent's service discovery, and scrapes them. Each class has the
// bytes there that `heapcam group` says, and a JVM has one series.
func TestParca(t *testing.T) {
	if !full {
		t.Skip("not run: profiles that a real Parca scrapes (make test-full)")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	agent := l.Addr().String()
	l.Close()
	const every = 10 * time.Second
	p := startParca(t, agent, every)
	d := newDaemon(t, "--max-trace-size", "4MiB", "--metrics", agent, "--profiles-scrape", "--profiles-interval",
		every.String())
	d.start(t)
	began := time.Now()
	for i, gc := range []string{"Serial", "G1"} {
		x := program{major: []int{17, 25}[i], gc: gc, heap: "96m", main: "Keeps", args: []string{
			strconv.Itoa(100_000 * (i + 1)), "180"}, env: []string{"OTEL_SERVICE_NAME=keep-" + strings.ToLower(gc)},
			opts: []string{d.option(t)}}
		x.plain(t)
	}
	recorded := map[string]string{}
	await(t, "two recordings", func() bool { recorded = d.byService(t); return len(recorded) == 2 })
	for service, dir := range recorded {
		t.Run(service, func(t *testing.T) {
			p.t = t
			var times []time.Time
			var values []int64
			n := 0
			for end := time.Now().Add(2 * time.Minute); len(times) < 4; time.Sleep(time.Second) {
				if times, values, n = p.series(service, began); time.Now().After(end) {
					t.Fatalf("%d profiles at the server", len(times))
				}
			}
			want, total := groupByType(t, dir)
			if n != 1 {
				t.Errorf("%d series", n)
			}
			for i, v := range values[1:] {
				if v != total {
					t.Errorf("at %v: %d bytes, the heap has %d", times[i+1], v, total)
				}
			}
			got := p.classes(service, times[len(times)-1])
			for class, n := range want {
				if got[class] != n {
					t.Errorf("%s: %d bytes in Parca, %d in the recording", class, got[class], n)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%d classes in Parca, %d in the recording", len(got), len(want))
			}
		})
	}
}
