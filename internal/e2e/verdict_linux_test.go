package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/tiers"
)

// TestVerdict: an agent whose JVM runs out of memory logs what filled the heap, shows it in status, and exports it as a
// metric. The process that reads the incident is another one than the agent.
func TestVerdict(t *testing.T) {
	tiers.Gate(t, "the verdict on an incident of a real JVM")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	d := newDaemon(t, "--metrics", address, "--sampling", "64KiB")
	d.start(t)
	p := program{major: 17, gc: "Serial", heap: "96m", main: "Exhaust", args: []string{"30", "4"},
		opts: []string{d.option(t), "-XX:-UseGCOverheadLimit"},
		env:  []string{"OTEL_SERVICE_NAME=shop", "OTEL_RESOURCE_ATTRIBUTES=service.version=1.2"}}
	r := p.plain(t)
	await(t, "the verdict in the log", func() bool {
		return strings.Contains(d.stderr.String(), "verdict on an incident")
	})
	line := regexp.MustCompile(`(?m)^.*verdict on an incident.*$`).FindString(d.stderr.String())
	t.Log(line)
	if !strings.Contains(line, "Exhaust") {
		t.Error("the log does not name what filled the heap")
	}
	var st struct {
		JVMs []session.Status `json:"jvms"`
	}
	heapcamJSON(t, &st, "status", "--json", "--socket", d.sock)
	if len(st.JVMs) != 1 || st.JVMs[0].Verdict == nil || len(st.JVMs[0].Verdict.Leaks) == 0 {
		t.Fatalf("status: %+v", st.JVMs)
	}
	v := st.JVMs[0].Verdict
	t.Logf("%+v", *v)
	a, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, _ := io.ReadAll(a.Body)
	want := fmt.Sprintf(`kind="%s",recording="%s",service="shop",site_id="%s",version="1.2"}`, v.Leaks[0].Kind,
		st.JVMs[0].ID, v.Leaks[0].SiteID)
	if !strings.Contains(string(b), "heapcam_leak_bytes_per_second{") || !strings.Contains(string(b), want) {
		t.Errorf("no %s in the metrics", want)
	}
	sameGarbage(t, filepath.Join(d.out, "incidents", v.Incident), v.Garbage, string(b))
	r.wait(t)
}

// sameGarbage holds what the metrics say of garbage in old space against the report of the incident that it is from.
func sameGarbage(t *testing.T, incident string, g *session.Garbage, metrics string) {
	t.Helper()
	if g == nil {
		t.Log("not shown: the verdict does not say how much of old space is garbage, as in a storm")
		return
	}
	var r struct {
		Garbage struct {
			Time      time.Time `json:"time"`
			Old       float64   `json:"old_bytes"`
			Unreached float64   `json:"unreached_bytes"`
			Weak      float64   `json:"weak_bytes"`
		} `json:"garbage"`
	}
	heapcamJSON(t, &r, "report", incident)
	for name, want := range map[string]float64{
		"heapcam_old_garbage_bytes":             r.Garbage.Unreached + r.Garbage.Weak,
		"heapcam_old_objects_bytes":             r.Garbage.Old,
		"heapcam_old_listing_timestamp_seconds": float64(r.Garbage.Time.UnixMilli()) / 1e3,
	} {
		line := regexp.MustCompile(`(?m)^` + name + `\{.*\} (\S+)$`).FindStringSubmatch(metrics)
		if line == nil {
			t.Errorf("no metric %s", name)
			continue
		}
		// Just after a full collection there may be no garbage.
		none := want == 0 && name != "heapcam_old_garbage_bytes"
		if got, err := strconv.ParseFloat(line[1], 64); err != nil || got != want || none {
			t.Errorf("%s, and the report has %.0f", line[0], want)
		}
		t.Log(line[0])
	}
}
