package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

// pyroscope is a real server: where profiles are pushed, and where it is asked.
type pyroscope struct{ push, url string }

// ask calls a method of the querier.
func (p *pyroscope) ask(t *testing.T, method string, q map[string]any, into any) {
	t.Helper()
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	a, err := http.Post(p.url+"/querier.v1.QuerierService/"+method, "application/json", bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, _ := io.ReadAll(a.Body)
	if err := json.Unmarshal(text, into); err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", method, a.Status, err, tail(string(text)))
	}
}

const inUse = "memory:inuse_space:bytes:space:bytes"

// steps gives the sum of a JVM's heap in each step.
func (p *pyroscope) steps(t *testing.T, service string, from, to time.Time, step time.Duration) (out []float64) {
	t.Helper()
	var answer struct {
		Series []struct {
			Points []struct {
				Value float64 `json:"value"`
			} `json:"points"`
		} `json:"series"`
	}
	p.ask(t, "SelectSeries", map[string]any{"profileTypeID": inUse, "labelSelector": selector(service),
		"start": from.UnixMilli(), "end": to.UnixMilli(), "step": step.Seconds()}, &answer)
	for _, s := range answer.Series {
		for _, x := range s.Points {
			out = append(out, x.Value)
		}
	}
	return out
}

func selector(service string) string { return fmt.Sprintf(`{service_name=%q}`, service) }

// classes gives the bytes of each class, which is the innermost frame, of the profiles between two times.
func (p *pyroscope) classes(t *testing.T, service string, from, to time.Time) map[string]int64 {
	t.Helper()
	var answer struct {
		Sample []struct {
			LocationID []string `json:"locationId"`
			Value      []string `json:"value"`
		} `json:"sample"`
		Location []struct {
			ID   string `json:"id"`
			Line []struct {
				FunctionID string `json:"functionId"`
			} `json:"line"`
		} `json:"location"`
		Function []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"function"`
		StringTable []string `json:"stringTable"`
	}
	p.ask(t, "SelectMergeProfile", map[string]any{"profileTypeID": inUse, "labelSelector": selector(service),
		"start": from.UnixMilli(), "end": to.UnixMilli(), "maxNodes": "1000000"}, &answer)
	functions, locations := map[string]string{}, map[string]string{}
	for _, f := range answer.Function {
		if i, err := strconv.Atoi(f.Name); err == nil && i < len(answer.StringTable) {
			functions[f.ID] = answer.StringTable[i]
		}
	}
	for _, l := range answer.Location {
		if len(l.Line) > 0 {
			locations[l.ID] = functions[l.Line[0].FunctionID]
		}
	}
	out := map[string]int64{}
	for _, s := range answer.Sample {
		if len(s.LocationID) > 0 && len(s.Value) > 0 {
			n, _ := strconv.ParseInt(s.Value[0], 10, 64)
			out[locations[s.LocationID[0]]] += n
		}
	}
	return out
}

// TestPyroscope: three real JVMs, pushed to a real Pyroscope. Each class has the bytes there that `heapcam group` says,
// a JVM has at most one series for each figure, and a step of the interval shows the heap once.
func TestPyroscope(t *testing.T) {
	if !full {
		t.Skip("not run: profiles to a real Pyroscope (make test-full)")
	}
	t.Run("folder", func(t *testing.T) { pushes(t, startPyroscope(t)) })
	t.Run("outage", outage)
	t.Run("components", func(t *testing.T) { pushes(t, startComponents(t, buckettest.Start(t))) })
	t.Run("bucket", func(t *testing.T) { // its data is in a bucket of a real S3 server
		s := buckettest.Start(t)
		pushes(t, startPyroscope(t, inBucket(s)...))
		if n := 0; !t.Failed() {
			_ = filepath.WalkDir(s.Dir, func(_ string, e fs.DirEntry, err error) error {
				if err == nil && e.Type().IsRegular() {
					n++
				}
				return nil
			})
			if n == 0 {
				t.Error("the bucket is empty")
			}
		}
	})
}

// pushes records three JVMs, and compares.
func pushes(t *testing.T, p *pyroscope) {
	const every = 10 * time.Second
	d := newDaemon(t, "--max-trace-size", "4MiB", "--profiles-url", p.push, "--profiles-interval", every.String())
	d.start(t)
	began := time.Now()
	services := map[string]*running{}
	for i, gc := range []string{"Serial", "Parallel", "G1"} {
		service := "keep-" + strings.ToLower(gc)
		x := program{major: []int{17, 25, 17}[i], gc: gc, heap: "96m", main: "Keeps", args: []string{
			strconv.Itoa(100_000 * (i + 1)), "180"}, env: []string{"OTEL_SERVICE_NAME=" + service},
			opts: []string{d.option(t)}}
		services[service] = x.plain(t)
	}
	recorded := map[string]string{}
	await(t, "three recordings", func() bool { recorded = d.byService(t); return len(recorded) == len(services) })
	at := time.Now().Truncate(every).Add(5 * every)
	time.Sleep(time.Until(at.Add(every)))
	for service := range services {
		t.Run(service, func(t *testing.T) { p.compare(t, service, recorded[service], at.Add(-3*every), every) })
	}
	var series struct {
		LabelsSet []struct {
			Labels []struct{ Name, Value string } `json:"labels"`
		} `json:"labelsSet"`
	}
	p.ask(t, "Series", map[string]any{"matchers": []string{}, "labelNames": []string{},
		"start": began.UnixMilli(), "end": time.Now().UnixMilli()}, &series)
	if n := len(series.LabelsSet); n == 0 || n > 8*len(services) {
		t.Errorf("%d series of %d JVMs", n, len(services))
	}
}

// compare compares the heap in a step with the recording's, and sums over steps with the heap.
func (p *pyroscope) compare(t *testing.T, service, dir string, from time.Time, every time.Duration) {
	want, total := groupByType(t, dir)
	got := map[string]int64{}
	await(t, "the profile of a step", func() bool {
		got = p.classes(t, service, from, from.Add(every-time.Millisecond))
		return len(got) > 0
	})
	for class, n := range want {
		if got[class] != n {
			t.Errorf("%s: %d bytes in Pyroscope, %d in the recording", class, got[class], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d classes in Pyroscope, %d in the recording", len(got), len(want))
	}
	for _, steps := range []int{1, 2} {
		sums := p.steps(t, service, from, from.Add(2*every-time.Millisecond), time.Duration(steps)*every)
		if len(sums) == 0 {
			t.Errorf("no sums over %d intervals", steps)
		}
		for i, v := range sums {
			if int64(v) != int64(steps)*total {
				t.Errorf("step %d of %d intervals: %.0f bytes, the heap has %d", i, steps, v, total)
			}
		}
	}
}

// byService gives the folder of each service's recording.
func (d *daemon) byService(t *testing.T) map[string]string {
	t.Helper()
	out, errs, code := heapcam(t, "status", "--json", "--socket", d.sock)
	if code != 0 {
		t.Fatalf("status %d: %s", code, errs)
	}
	var st struct {
		JVMs []struct {
			ID       string            `json:"id"`
			Resource map[string]string `json:"resource"`
		} `json:"jvms"`
	}
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, j := range st.JVMs {
		if _, err := os.Stat(filepath.Join(d.out, j.ID)); err == nil {
			at[j.Resource["service.name"]] = filepath.Join(d.out, j.ID)
		}
	}
	return at
}

// groupByType gives the bytes of each class after the last collection of a recording, and of all.
func groupByType(t *testing.T, dir string) (map[string]int64, int64) {
	t.Helper()
	out, errs, code := heapcam(t, "group", dir, "--by", "type", "--json")
	if code != 0 {
		t.Fatalf("group: status %d: %s", code, errs)
	}
	var g struct {
		Bytes int64 `json:"bytes"`
		Tree  struct {
			Children []struct {
				Key   string `json:"key"`
				Bytes int64  `json:"bytes"`
			} `json:"children"`
		} `json:"tree"`
	}
	if err := json.Unmarshal([]byte(out), &g); err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, c := range g.Tree.Children {
		all[c.Key] += c.Bytes
	}
	return all, g.Bytes
}
