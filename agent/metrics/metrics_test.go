package metrics

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/heapcam/heapcam/agent/api"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/agent/spool"
	"github.com/heapcam/heapcam/trace"
)

func source() Source {
	return Source{
		Version: "v1",
		Status: func() []session.Status {
			return []session.Status{
				{ID: "Shop-1-a", Name: "Shop", Phase: session.Recording, Depth: "full", TraceBytes: 4096,
					ProbeNS: 2_500_000_000, ReferencesNS: 500_000_000, Dropped: session.Drops{StoreEpochs: 3},
					Quality: &session.Quality{Bytes: 100, Exact: 20, Unknown: 80},
					Resource: trace.Resource{trace.AttrService: "shop", trace.AttrVersion: "1.2",
						trace.AttrPod: "shop-1"}},
				{ID: "odd\n\"name\"-2-b", Name: "odd\n\"name\"", Phase: session.KilledPhase},
			}
		},
		Incidents: func() (int, int64) { return 2, 8192 },
		Spool:     func() *spool.Status { return &spool.Status{Taken: 5, Left: make([]spool.Item, 3)} },
		Others:    func() []api.Other { return []api.Other{{Ignored: true}, {}, {}} },
	}
}

func TestMetrics(t *testing.T) {
	const notRecordedHelp = "JVMs that the agent found and does not record."
	want := `
# HELP heapcam_ring_bytes Size of the recording on disk.
# TYPE heapcam_ring_bytes gauge
heapcam_ring_bytes{jvm="Shop",recording="Shop-1-a"} 4096
heapcam_ring_bytes{jvm="odd\\x0a\"name\"",recording="odd\\x0a\"name\"-2-b"} 0
# HELP heapcam_probe_pause_seconds_total Time for which heapcam stopped the JVM, by the probe's clock.
# TYPE heapcam_probe_pause_seconds_total counter
heapcam_probe_pause_seconds_total{jvm="Shop",recording="Shop-1-a"} 3
heapcam_probe_pause_seconds_total{jvm="odd\\x0a\"name\"",recording="odd\\x0a\"name\"-2-b"} 0
# HELP heapcam_recording_info 1, with attributes of OpenTelemetry that say whose the recording is.
# TYPE heapcam_recording_info gauge
heapcam_recording_info{host="",instance="shop-1",jvm="Shop",namespace="",recording="Shop-1-a",` +
		`service="shop",version="1.2"} 1
# HELP heapcam_jvms_not_recorded ` + notRecordedHelp + `
# TYPE heapcam_jvms_not_recorded gauge
heapcam_jvms_not_recorded{why="failed"} 2
heapcam_jvms_not_recorded{why="ignored"} 1
`
	if err := testutil.CollectAndCompare(collector{source()}, strings.NewReader(want), "heapcam_ring_bytes",
		"heapcam_probe_pause_seconds_total", "heapcam_recording_info", "heapcam_jvms_not_recorded"); err != nil {
		t.Error(err)
	}
	if p, err := testutil.CollectAndLint(collector{source()}); err != nil || len(p) > 0 {
		t.Errorf("lint: %v %v", p, err)
	}
}

// TestPauses: pauses are a native histogram, with the buckets that they belong to and nothing else.
func TestPauses(t *testing.T) {
	src := source()
	src.Status = func() []session.Status {
		return []session.Status{{ID: "Shop-1-a", Name: "Shop", Pauses: session.PausesOf(2e6, 2e6, 500e6)}, {ID: "x"}}
	}
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(collector{src})
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() != "heapcam_gc_pause_seconds" {
			continue
		}
		h := f.Metric[0].Histogram
		if len(f.Metric) != 1 || h.GetSchema() != session.PauseSchema || h.GetSampleCount() != 3 ||
			h.GetSampleSum() != 0.504 || len(h.PositiveSpan) != 2 || len(h.Bucket) != 0 {
			t.Errorf("%v", f)
		}
		return
	}
	t.Error("no heapcam_gc_pause_seconds")
}

func TestHandler(t *testing.T) {
	var down error
	srv := httptest.NewServer(Handler(source(), func(context.Context) error { return down }))
	defer srv.Close()
	get := func(path string) (int, string) {
		r, err := srv.Client().Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	if code, b := get("/metrics"); code != 200 ||
		!strings.Contains(b, `heapcam_lost_epochs_total{jvm="Shop",reason="store",recording="Shop-1-a"} 3`) {
		t.Errorf("%d %s", code, b)
	}
	if code, b := get("/metrics"); code != 200 || !strings.Contains(b, "\nheapcam_incidents 2\n") ||
		!strings.Contains(b, "\nheapcam_incidents_bytes 8192\n") {
		t.Errorf("%d %s", code, b)
	}
	if code, b := get("/metrics"); code != 200 || !strings.Contains(b, "\nheapcam_spool_left 3\n") ||
		!strings.Contains(b, "\nheapcam_spool_taken_total 5\n") {
		t.Errorf("%d %s", code, b)
	}
	if code, b := get("/healthz"); code != 200 || b != "ok\n" {
		t.Errorf("%d %s", code, b)
	}
	down = errors.New("it hangs")
	if code, b := get("/healthz"); code != 503 || b != "it hangs\n" {
		t.Errorf("%d %s", code, b)
	}
}

// TestLeaks: series of leaks are those of verdicts, are bounded, and never twice the same.
func TestLeaks(t *testing.T) {
	src := source()
	src.Status = func() (all []session.Status) {
		for i := range 20 {
			v := &session.Verdict{LeftOut: 1}
			for k := range 5 {
				v.Leaks = append(v.Leaks, session.Leak{Kind: "leak", Class: "demo.Entry", SiteID: strconv.Itoa(k / 2),
					BytesPerSecond: float64(100*i + k)})
			}
			all = append(all, session.Status{ID: "Shop-" + strconv.Itoa(i), Name: "Shop", Verdict: v,
				Resource: trace.Resource{trace.AttrService: "shop", trace.AttrVersion: "1.2"}})
		}
		return append(all, session.Status{ID: "quiet"})
	}
	if n := testutil.CollectAndCount(collector{src}, "heapcam_leak_bytes_per_second"); n != maxLeaks {
		t.Errorf("%d series", n)
	}
	want := `
# HELP heapcam_leaks_left_out Verdicts that heapcam_leak_bytes_per_second leaves out.
# TYPE heapcam_leaks_left_out gauge
heapcam_leaks_left_out 70
`
	err := testutil.CollectAndCompare(collector{src}, strings.NewReader(want), "heapcam_leaks_left_out")
	if err != nil {
		t.Error(err)
	}
}

// TestGarbage: recordings whose newest incident has a reference listing have series of garbage in old space, no others.
func TestGarbage(t *testing.T) {
	src := source()
	src.Status = func() []session.Status {
		g := session.Garbage{Time: time.UnixMilli(1_700_000_000_250), Old: 4096, Dead: 1024}
		return []session.Status{{ID: "Shop-1", Name: "Shop", Verdict: &session.Verdict{Garbage: &g}},
			{ID: "Shop-2", Name: "Shop", Verdict: &session.Verdict{}}, {ID: "Shop-3", Name: "Shop"}}
	}
	want := `
# HELP heapcam_old_garbage_bytes Garbage in old space that was not collected yet.
# TYPE heapcam_old_garbage_bytes gauge
heapcam_old_garbage_bytes{jvm="Shop",recording="Shop-1"} 1024
# HELP heapcam_old_listing_timestamp_seconds Time of the reference listing behind heapcam_old_garbage_bytes, Unix time.
# TYPE heapcam_old_listing_timestamp_seconds gauge
heapcam_old_listing_timestamp_seconds{jvm="Shop",recording="Shop-1"} 1.70000000025e+09
# HELP heapcam_old_objects_bytes Objects in old space, garbage included, at the time of heapcam_old_garbage_bytes.
# TYPE heapcam_old_objects_bytes gauge
heapcam_old_objects_bytes{jvm="Shop",recording="Shop-1"} 4096
`
	err := testutil.CollectAndCompare(collector{src}, strings.NewReader(want), "heapcam_old_garbage_bytes",
		"heapcam_old_objects_bytes", "heapcam_old_listing_timestamp_seconds")
	if err != nil {
		t.Error(err)
	}
}

// TestHiddenCharacters: no label value holds control or bidi characters, whatever a program calls itself.
func TestHiddenCharacters(t *testing.T) {
	name := "a\x1b]0;t\a\u202eb"
	src := source()
	src.Status = func() []session.Status {
		return []session.Status{{ID: name + "-1", Name: name, Phase: session.Recording,
			Resource: trace.Resource{trace.AttrService: name}}}
	}
	w := httptest.NewRecorder()
	Handler(src, nil).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body := w.Body.String()
	if strings.ContainsAny(body, "\x1b\a\u202e") || !strings.Contains(body, `jvm="a\\x1b]0;t`) {
		t.Errorf("%.2000q", body)
	}
}
