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
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/tiers"
)

// rest is what stands for a stack where there is none.
var rest = regexp.MustCompile(`\((site unknown|before the recording|site not known)\)`)

// siteFigures are the values of a profile by class and stack, as "class < frame:line < …". What has no sample is one
// entry of its class.
func siteFigures(t *testing.T, p *profile.Profile, value string) map[string]int64 {
	t.Helper()
	at := -1
	for i, v := range p.SampleType {
		if v.Type == value {
			at = i
		}
	}
	if at < 0 {
		t.Fatalf("no %s in %v", value, p.SampleType)
	}
	out := map[string]int64{}
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			frames = append(frames, fmt.Sprintf("%s:%d", l.Line[0].Function.Name, l.Line[0].Line))
		}
		if c := s.Label["type"]; len(c) > 0 { // an export has the class as a label
			frames = append([]string{c[0] + ":0"}, frames...)
		}
		key := rest.ReplaceAllString(strings.Join(frames, " < "), "(rest)")
		out[key] += s.Value[at]
	}
	return out
}

func getBody(t *testing.T, address string) (int, []byte) {
	t.Helper()
	a, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, b
}

// TestProfiles: what an agent serves to scrapers of a running JVM is, after the same collection, what an export of the
// recording says by class and site; the profile has no labels, and the class as its leaf.
func TestProfiles(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := "http://" + l.Addr().String()
	l.Close()
	d := newDaemon(t, "--metrics", strings.TrimPrefix(address, "http://"), "--sampling", "16KiB",
		"--profiles-scrape", "--profiles-interval", "10s", "--max-trace-size", "64MiB")
	d.start(t)
	p := program{major: 25, gc: "G1", main: "Steady", args: []string{"40000000", "20000"}, opts: []string{d.option(t)},
		env: []string{"OTEL_SERVICE_NAME=shop"}}
	r := p.plain(t)
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	var all []target
	await(t, "a profile", func() bool {
		a, err := http.Get(address + "/profiles/targets")
		if err != nil { // the agent does not listen yet
			return false
		}
		defer a.Body.Close()
		all = nil
		return json.NewDecoder(a.Body).Decode(&all) == nil && len(all) == 1
	})
	labels := all[0].Labels
	if labels["service_name"] != "shop" || len(labels) > 8 {
		t.Errorf("labels %v", labels)
	}
	code, b := getBody(t, address+labels["__profile_path__"]+"?recording="+url.QueryEscape(labels["__param_recording"]))
	if code != 200 {
		t.Fatalf("%d %s", code, b)
	}
	served, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range served.Sample {
		if len(s.Label)+len(s.NumLabel) > 0 {
			t.Fatalf("labels: %v", s.Label)
		}
	}
	var gc uint64
	if _, err := fmt.Sscanf(served.Comments[0], "heapcam: in use after collection %d", &gc); err != nil {
		t.Fatal(served.Comments)
	}
	if code, _ := getBody(t, address+"/profiles/heap?recording=nobody"); code != 404 {
		t.Errorf("%d for a recording that is not there", code)
	}
	var st struct {
		JVMs []session.Status `json:"jvms"`
	}
	heapcamJSON(t, &st, "status", "--json", "--socket", d.sock)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil { // on a quick machine it must not end before
		t.Fatal(err)
	}
	r.wait(t)
	file := filepath.Join(t.TempDir(), "heap.pb.gz")
	if _, errs, code := heapcam(t, "export", "--format", "pprof", "--at", fmt.Sprint(gc), "-o", file,
		st.JVMs[0].Dir); code != 0 {
		t.Fatal(errs)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	exported, err := profile.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"inuse_space", "inuse_objects"} {
		got, want := siteFigures(t, served, value), siteFigures(t, exported, value)
		sites, sum := 0, int64(0)
		for k, n := range want {
			if n == 0 {
				continue
			}
			sites++
			sum += n
			if diff := got[k] - n; diff < -1 || diff > 1 { // rounded, and the rest in two parts
				t.Errorf("%s: %d, exported %d: %s", value, got[k], n, k)
			}
			delete(got, k)
		}
		for k, n := range got {
			if n > 1 && !strings.HasPrefix(k, "(other)") {
				t.Errorf("%s: %d, not exported: %s", value, n, k)
			}
		}
		t.Logf("%s after collection %d: %d sites, %d in all; %d bytes gzipped", value, gc, sites, sum, len(b))
	}
	if n := siteFigures(t, served, "alloc_space"); len(n) < 5 {
		t.Errorf("allocated: %v", n)
	}
	t.Logf("agent: %d ms of CPU for the JVM, %d samples", st.JVMs[0].AgentCPUNS/1e6, st.JVMs[0].Samples)
}

// TestProfilesLostAtKill: a real agent is killed while the server is away. The next one pushes what was kept, and says
// what was not: in the log, in status and in a metric.
func TestProfilesLostAtKill(t *testing.T) {
	tiers.Gate(t, "profiles of an agent that is killed")
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	m, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := m.Addr().String()
	l.Close()
	m.Close()
	d := newDaemon(t, "--profiles-url", "http://"+address, "--profiles-interval", "10s", "--max-trace-size", "4MiB",
		"--metrics", served)
	d.start(t)
	end := filepath.Join(t.TempDir(), "end")
	p := program{major: 17, gc: "Serial", heap: "64m", main: "Until", args: []string{end, "2000", "5"},
		opts: []string{d.option(t)}}
	r := p.plain(t)
	counts := func() (n struct {
		Profiles struct{ Pending, Pushed, Dropped uint64 }
	}) {
		heapcamJSON(t, &n, "status", "--json", "--socket", d.sock)
		return n
	}
	await(t, "three profiles that wait", func() bool { return counts().Profiles.Pending == 3 })
	d.kill() // the next profile is ten seconds away
	kept, err := os.ReadFile(filepath.Join(d.out, ".profiles"))
	if err != nil {
		t.Fatal(err)
	}
	lost := 3 - uint64(bytes.Count(kept, []byte("\n")))
	if lost == 0 || lost == 3 {
		t.Fatalf("%d of 3 profiles are kept", 3-lost)
	}
	if l, err = net.Listen("tcp", address); err != nil {
		t.Skipf("not run: profiles of an agent that is killed (%v)", err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, strings.NewReader("{}"))
	})}
	go srv.Serve(l)
	defer srv.Close()
	d.start(t)
	await(t, "the kept profiles at the server", func() bool {
		n := counts().Profiles
		return n.Pending == 0 && n.Pushed >= 3-lost
	})
	if n := counts().Profiles; n.Dropped != lost {
		t.Errorf("%+v, %d were lost", n, lost)
	}
	out, _, _ := heapcam(t, "status", "--socket", d.sock)
	_, metrics := getBody(t, "http://"+served+"/metrics")
	if !strings.Contains(out, fmt.Sprintf("%d lost", lost)) ||
		!strings.Contains(string(metrics), fmt.Sprintf("heapcam_profiles_dropped_total %d\n", lost)) ||
		!strings.Contains(d.stderr.String(), fmt.Sprintf("profiles=%d", lost)) {
		t.Errorf("%d were lost: %s", lost, out)
	}
	r.end(t, end)
}
