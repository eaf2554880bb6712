package fleetsql

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/bucket/buckettest"
)

// installed finds what tools/setup installs for tests of ClickHouse; without it the test is skipped.
func installed(t *testing.T, name string) string {
	t.Helper()
	cache, _ := os.UserCacheDir()
	p := filepath.Join(cache, "heapcam-tools", name)
	if _, err := os.Stat(p); err != nil {
		t.Skipf("not run: queries in ClickHouse (no %s; make test-full installs it)", name)
	}
	return p
}

// engine answers queries: with lines of cells, apart by tabs. CPU is what it has taken.
type engine interface {
	ask(t *testing.T, query string) [][]string
	cpu(t *testing.T) time.Duration
}

// chdb is a current ClickHouse, as a library, in a process of its own.
type chdb struct {
	c   *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startChdb(t *testing.T) *chdb {
	t.Helper()
	library, dir := installed(t, "libchdb.so"), t.TempDir()
	program := filepath.Join(dir, "chdb")
	source, err := filepath.Abs("testdata/chdb.c")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, source,
		"-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	e := &chdb{c: exec.Command(program, library, filepath.Join(dir, "data"))}
	e.c.Stderr = os.Stderr
	in, err := e.c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	e.in, e.out = in, bufio.NewReader(out)
	if err := e.c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		e.c.Wait()
	})
	return e
}

// text gives an answer as it is.
func (e *chdb) text(t *testing.T, query string) []byte {
	t.Helper()
	if _, err := io.WriteString(e.in, query+"\x00"); err != nil {
		t.Fatal(err)
	}
	line, err := e.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	word, size, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.Atoi(size)
	if err != nil {
		t.Fatalf("%q", line)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(e.out, b); err != nil {
		t.Fatal(err)
	}
	if word != "ok" {
		t.Fatalf("%s\n%s", b, query)
	}
	return b
}

func (e *chdb) ask(t *testing.T, query string) [][]string {
	t.Helper()
	return cells(e.text(t, query+"\nFORMAT TSVWithNames"))
}

func (e *chdb) cpu(t *testing.T) time.Duration { return cpuOf(t, e.c.Process.Pid) }

func cells(b []byte) (out [][]string) {
	for line := range strings.Lines(string(b)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return out
}

// cpuOf gives the CPU time of a process.
func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	u, _ := strconv.Atoi(f[11])
	s, _ := strconv.Atoi(f[12])
	return time.Duration(u+s) * 10 * time.Millisecond
}

// answers runs the queries of the page in an engine, and compares with what was planted.
func answers(t *testing.T, e engine) {
	t.Helper()
	var all [][]map[string]any
	for _, q := range queries(t, "fleet-clickhouse.md") {
		before := e.cpu(t)
		lines := e.ask(t, q)
		var rows []map[string]any
		for _, l := range lines[1:] {
			row := map[string]any{}
			for i, name := range lines[0] {
				row[name] = l[i]
			}
			rows = append(rows, row)
		}
		first, _, _ := strings.Cut(q, "\n")
		t.Logf("%d rows, %.2f s of CPU: %s", len(rows), (e.cpu(t) - before).Seconds(), first)
		all = append(all, rows)
	}
	found(t, all)
	for _, r := range all[4] {
		if r["service"] == serviceName(services-1) && r["version"] == versionName(2) {
			if p, err := strconv.ParseFloat(fmt.Sprint(r["p99_ms"]), 64); err != nil || math.Abs(p-3) > 1e-9 {
				t.Errorf("pauses: %v", r)
			}
		}
	}
}

// times are the columns of a table that are times in Parquet, and numbers in the views of the page.
var times = map[string][]string{"sites": {"time_ms"}, "collections": {"time_ms"}, "stacks": nil,
	"leaks": {"time_ms", "onset_from_ms", "onset_to_ms"}}

// views makes the views of the page.
func (e *chdb) views(t *testing.T, from string) {
	t.Helper()
	for table, columns := range times {
		what := "*"
		var as []string
		for _, c := range columns {
			as = append(as, fmt.Sprintf("toUnixTimestamp64Milli(%s) AS %[1]s", c))
		}
		if len(as) > 0 {
			what = "* REPLACE (" + strings.Join(as, ", ") + ")"
		}
		e.text(t, "CREATE OR REPLACE VIEW "+table+" AS SELECT "+what+" FROM "+
			strings.ReplaceAll(from, "TABLE", table)+" SETTINGS use_hive_partitioning = 0")
	}
}

// TestClickHouse: a current ClickHouse finds the five planted leaks and no other in the same files, from a folder and
// from a bucket of a real S3 server; and so do two servers of another version, each with half of the recordings.
func TestClickHouse(t *testing.T) {
	s := buckettest.Start(t)
	dir := filepath.Join(s.Dir, s.Bucket)
	e := startChdb(t)
	t.Logf("ClickHouse %s", e.text(t, "SELECT version()"))
	makeFleet(t, dir)
	for _, way := range []struct{ name, from string }{
		{"bucket", fmt.Sprintf("s3('%s/%s/TABLE/**/*.parquet', '%s', '%s', 'Parquet')", s.URL, s.Bucket, s.Key,
			s.Secret)},
		{"folder", fmt.Sprintf("file('%s/TABLE/**/*.parquet', 'Parquet')", dir)},
	} {
		t.Run(way.name, func(t *testing.T) {
			e.views(t, way.from)
			answers(t, e)
		})
	}
	t.Run("shards", func(t *testing.T) { answers(t, startShards(t, e)) })
}
