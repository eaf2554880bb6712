package e2e

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

// part is a process of Pyroscope, version 2. There is no Debian package of it; a checkout of
// github.com/grafana/pyroscope builds it: go build ./cmd/pyroscope.
type part struct {
	program, dir, url string
	flags             []string
	log               buffer
	c                 *exec.Cmd
}

func newPart(t *testing.T, httpPort, grpcPort int, flags ...string) *part {
	t.Helper()
	program, err := exec.LookPath("pyroscope")
	if err != nil {
		t.Skip("not run: profiles to a real Pyroscope (no pyroscope in PATH)")
	}
	p := &part{program: program, dir: t.TempDir(), url: fmt.Sprintf("http://127.0.0.1:%d", httpPort)}
	p.flags = append(flags, "-architecture.storage=v2", "-server.http-listen-address=127.0.0.1",
		fmt.Sprintf("-server.http-listen-port=%d", httpPort), fmt.Sprintf("-server.grpc-listen-port=%d", grpcPort),
		"-server.grpc-listen-address=127.0.0.1", "-memberlist.bind-addr=127.0.0.1",
		"-memberlist.advertise-addr=127.0.0.1", "-distributor.ring.instance-addr=127.0.0.1",
		"-query-frontend.instance-addr=127.0.0.1", "-segment-writer.lifecycler.addr=127.0.0.1",
		"-segment-writer.distributor.replication-factor=1", "-segment-writer.min-ready-duration=1s",
		"-self-profiling.disable-push", "-usage-stats.enabled=false", "-log.level=warn")
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("pyroscope: %s", tail(p.log.String()))
		}
	})
	return p
}

// start starts it; it is ready later.
func (p *part) start(t *testing.T) {
	t.Helper()
	p.c = exec.Command(p.program, p.flags...)
	p.c.Dir, p.c.Stdout, p.c.Stderr = p.dir, &p.log, &p.log
	p.c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.c.Start(); err != nil {
		t.Fatal(err)
	}
}

func (p *part) kill() {
	if p.c != nil {
		p.c.Process.Kill()
		p.c.Wait()
		p.c = nil
	}
}

// ready waits until it is.
func (p *part) ready(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Second) {
		if a, err := http.Get(p.url + "/ready"); err == nil {
			a.Body.Close()
			if a.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("pyroscope is not ready: %s", tail(p.log.String()))
		}
	}
}

// newWhole gives a server with all of it in one process, and its data in a folder, unless flags say otherwise.
func newWhole(t *testing.T, flags ...string) *part {
	t.Helper()
	for _, port := range []string{"4040", "9095", "9099"} { // some of its parts know no other ports
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Skipf("not run: profiles to a real Pyroscope (%v)", err)
		}
		l.Close()
	}
	p := newPart(t, 4040, 9095, flags...)
	p.start(t)
	p.ready(t)
	return p
}

func startPyroscope(t *testing.T, flags ...string) *pyroscope {
	t.Helper()
	p := newWhole(t, flags...)
	return &pyroscope{p.url, p.url}
}

// inBucket are flags for data in a bucket.
func inBucket(s *buckettest.Server) []string {
	return []string{"-storage.backend=s3", "-storage.s3.insecure", "-storage.s3.region=us-east-1",
		"-storage.s3.endpoint=" + strings.TrimPrefix(s.URL, "http://"), "-storage.s3.bucket-name=" + s.Bucket,
		"-storage.s3.access-key-id=" + s.Key, "-storage.s3.secret-access-key=" + s.Secret,
		"-storage.s3.bucket-lookup-type=path-style"}
}

// startComponents starts each component of Pyroscope as a process of its own, with two segment writers, on a bucket.
func startComponents(t *testing.T, s *buckettest.Server) *pyroscope {
	t.Helper()
	port := func() int {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port
	}
	gossip, raft, meta, backend := [2]int{port(), port()}, port(), port(), port()
	common := append(inBucket(s), fmt.Sprintf("-metastore.address=127.0.0.1:%d/metastore", meta),
		fmt.Sprintf("-query-backend.address=127.0.0.1:%d", backend),
		fmt.Sprintf("-memberlist.join=127.0.0.1:%d", gossip[0]),
		fmt.Sprintf("-memberlist.join=127.0.0.1:%d", gossip[1]))
	all := map[string]*part{}
	for _, x := range []struct {
		name         string
		grpc, gossip int
		flags        []string
	}{
		{"metastore", meta, port(), []string{fmt.Sprintf("-metastore.raft.bind-address=127.0.0.1:%d", raft),
			fmt.Sprintf("-metastore.raft.advertise-address=127.0.0.1:%d", raft), "-metastore.raft.server-id=metastore",
			fmt.Sprintf("-metastore.raft.bootstrap-peers=127.0.0.1:%d/metastore", raft),
			"-metastore.raft.bootstrap-expect-peers=1", "-metastore.min-ready-duration=0"}},
		{"segment-writer", port(), gossip[0], []string{"-segment-writer.lifecycler.ID=writer-1"}},
		{"segment-writer", port(), gossip[1], []string{"-segment-writer.lifecycler.ID=writer-2"}},
		{"distributor", port(), port(), nil},
		{"query-backend", backend, port(), nil},
		{"query-frontend", port(), port(), nil},
		{"compaction-worker", port(), port(), nil},
	} {
		p := newPart(t, port(), x.grpc, append(append(x.flags, common...), "-target="+x.name,
			"-memberlist.nodename="+x.name+strconv.Itoa(x.grpc), fmt.Sprintf("-memberlist.bind-port=%d", x.gossip),
			fmt.Sprintf("-memberlist.advertise-port=%d", x.gossip))...)
		p.start(t)
		if x.name == "metastore" {
			p.ready(t)
		}
		if all[x.name] == nil {
			all[x.name] = p
		} else {
			all["second"] = p
		}
	}
	for _, p := range all {
		p.ready(t)
	}
	return &pyroscope{all["distributor"].url, all["query-frontend"].url}
}

// outage: the server is killed, away for several intervals (HEAPCAM_OUTAGE: how long), and back. Each step, also those
// of the outage, then shows the heap once, and no collection of the recording is lost.
func outage(t *testing.T) {
	const every = 10 * time.Second
	length := 4 * every
	if v, err := time.ParseDuration(os.Getenv("HEAPCAM_OUTAGE")); err == nil {
		length = v
	}
	server := newWhole(t)
	p := &pyroscope{server.url, server.url}
	d := newDaemon(t, "--max-trace-size", "4MiB", "--profiles-url", p.push, "--profiles-interval", every.String())
	d.start(t)
	x := program{major: 17, gc: "G1", heap: "96m", main: "Keeps", args: []string{"200000",
		strconv.Itoa(300 + int(length/time.Second))}, timeout: 10*time.Minute + length,
		env: []string{"OTEL_SERVICE_NAME=keep-outage"}, opts: []string{d.option(t)}}
	x.plain(t)
	recorded := map[string]string{}
	await(t, "a recording", func() bool { recorded = d.byService(t); return len(recorded) == 1 })
	from := time.Now().Truncate(every).Add(2 * every)
	time.Sleep(time.Until(from.Add(2 * every)))
	server.kill()
	began := time.Now()
	time.Sleep(length)
	server.start(t)
	server.ready(t)
	away := time.Since(began)
	to := time.Now().Truncate(every).Add(2 * every)
	time.Sleep(time.Until(to.Add(every)))
	_, total := groupByType(t, recorded["keep-outage"])
	steps := int(to.Sub(from) / every)
	var sums []float64
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) { // the retry may wait
		if sums = p.steps(t, "keep-outage", from, to.Add(-time.Millisecond), every); len(sums) >= steps {
			break
		}
	}
	if len(sums) != steps {
		t.Errorf("%d steps, want %d", len(sums), steps)
	}
	for i, v := range sums {
		if int64(v) != total {
			t.Errorf("step %d: %.0f bytes, the heap has %d", i, v, total)
		}
	}
	for _, j := range d.status(t).JVMs {
		if j.Dropped.RingEpochs+j.Dropped.StoreEpochs > 0 {
			t.Errorf("lost: %+v", j.Dropped)
		}
		t.Logf("away %v; %d steps of %d bytes each; %d collections recorded in %s", away.Round(time.Second), len(sums),
			total, j.Collections, filepath.Base(recorded["keep-outage"]))
	}
}
