package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
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
	if g := v.Garbage; g == nil {
		t.Log("the verdict does not say how much of old space is garbage")
	} else if want := fmt.Sprintf("recording=%q} %g", st.JVMs[0].ID, float64(g.Dead)); g.Old < g.Dead ||
		time.Since(g.Time).Abs() > time.Hour || !strings.Contains(string(b), want) {
		t.Errorf("garbage %+v, and the metrics do not have %s", *g, want)
	}
	r.wait(t)
}
