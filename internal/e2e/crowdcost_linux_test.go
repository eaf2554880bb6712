package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

// TestCrowdCost says what profiles, tables, verdicts and metrics cost an agent of a hundred JVMs: its CPU time with all
// of them off and on, in turn, with the same JVMs. HEAPCAM_WINDOW is the length of a turn.
func TestCrowdCost(t *testing.T) {
	if !full {
		t.Skip("not run: what a fleet's engines cost an agent of a hundred JVMs (make test-full)")
	}
	const n = 100
	window := 2 * time.Minute
	if v, err := time.ParseDuration(os.Getenv("HEAPCAM_WINDOW")); err == nil {
		window = v
	}
	if free := number(t, "/proc/meminfo", "MemAvailable:"); free < n*100<<10 {
		t.Skipf("not run: a hundred JVMs on one agent (%d MiB are free)", free>>10)
	}
	s := buckettest.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	var pushes, bytes atomic.Int64
	sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		pushes.Add(1)
		bytes.Add(n)
		_, _ = io.WriteString(w, "{}")
	}))
	defer sink.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	d, mark := discoverer(t, "--max-trace-size", "4MiB", "--emergency", "off", "--sampling", "16KiB")
	off := d.flags
	on := append(append([]string{}, off...), "--profiles-url", sink.URL, "--profiles-interval", "1m",
		"--profiles-scrape", "--upload", "s3://"+s.Bucket, "--upload-tables", "1h", "--verdict-interval", "6h",
		"--metrics", address)
	file := filepath.Join(t.TempDir(), "end")
	var all []*running
	for range n {
		p := program{major: 17, gc: "Serial", heap: "24m", main: "Fleet", args: []string{file, "200000"},
			timeout: 40 * time.Minute, opts: []string{mark, "-Xmn2m", "-Xss256k", "-XX:TieredStopAtLevel=1",
				"-XX:ReservedCodeCacheSize=8m", "-XX:CICompilerCount=1"}}
		all = append(all, p.plain(t))
	}
	var took [2][]float64
	for turn := range 4 {
		d.flags = [][]string{off, on}[turn%2]
		d.start(t)
		for end := time.Now().Add(4 * time.Minute); recordings(t, d) < n && time.Now().Before(end); {
			time.Sleep(time.Second)
		}
		time.Sleep(20 * time.Second)
		stop := make(chan struct{})
		if turn%2 == 1 {
			go scrape(address, stop)
		}
		pushes.Store(0)
		bytes.Store(0)
		begun, before := time.Now(), cpuWithChildren(t, d.cmd.Process.Pid)
		time.Sleep(window)
		share := float64(cpuWithChildren(t, d.cmd.Process.Pid)-before) / time.Since(begun).Seconds()
		close(stop)
		took[turn%2] = append(took[turn%2], share)
		t.Logf("turn %d, on: %v: %.2f %% of a core, %d recordings; %d pushes of %d bytes", turn, turn%2 == 1, share,
			recordings(t, d), pushes.Load(), bytes.Load())
		d.stop(t)
	}
	t.Logf("%% of a core, off: %.2f, on: %.2f; added %.2f", took[0], took[1],
		(took[1][0]+took[1][1]-took[0][0]-took[0][1])/2)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		r.cmd.Wait()
	}
}

func recordings(t *testing.T, d *daemon) (n int) {
	t.Helper()
	for _, s := range d.status(t).JVMs {
		if s.Phase == session.Recording {
			n++
		}
	}
	return n
}

// scrape reads the metrics every 15 s, as Prometheus does.
func scrape(address string, stop chan struct{}) {
	for {
		if a, err := http.Get("http://" + address + "/metrics"); err == nil {
			_, _ = io.Copy(io.Discard, a.Body)
			a.Body.Close()
		}
		select {
		case <-stop:
			return
		case <-time.After(15 * time.Second):
		}
	}
}

// cpuWithChildren gives the CPU time of a process and of its children that have ended, in hundredths of a second.
func cpuWithChildren(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, v := range strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))[11:15] {
		n, _ := strconv.Atoi(v)
		sum += n
	}
	return sum
}
