package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/bucket/buckettest"
	"github.com/heapcam/heapcam/internal/bucket/s3"
	"github.com/heapcam/heapcam/internal/tables"
)

// exported gives a table of a recording.
func exported[T any](t *testing.T, dir, table string, more ...string) []T {
	t.Helper()
	file := filepath.Join(t.TempDir(), table+".json")
	args := append([]string{"export", "--format", "json", "--table", table, "-o", file}, more...)
	if _, errs, code := heapcam(t, append(args, dir)...); code != 0 {
		t.Fatal(errs)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Rows []T }
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Rows
}

// TestTables: the tables that an agent puts into a bucket are, for a JVM that has ended, those that export writes of
// the recording: the same sites, stacks and figures after the same collection, and the same collections. A restart of
// the agent loses none.
func TestTables(t *testing.T) {
	s := buckettest.Start(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	d := newDaemon(t, "--upload", "s3://"+s.Bucket+"/fleet", "--upload-tables", "1h", "--sampling", "16KiB",
		"--max-trace-size", "256MiB")
	d.start(t)
	p := program{major: 17, gc: "G1", main: "Steady", args: []string{"400000", "2000"}, opts: []string{d.option(t)},
		env: []string{"OTEL_SERVICE_NAME=shop", "OTEL_RESOURCE_ATTRIBUTES=service.version=1.4"}}
	p.plain(t).wait(t)
	var st struct {
		JVMs []session.Status `json:"jvms"`
	}
	await(t, "the end of the recording", func() bool {
		heapcamJSON(t, &st, "status", "--json", "--socket", d.sock)
		return len(st.JVMs) == 1 && st.JVMs[0].Phase.Over()
	})
	d.stop(t)
	d.start(t)
	c, err := s3.Dial(s.Bucket, s3.Options{Endpoint: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	await(t, "tables in the bucket", func() bool {
		clear(found)
		if err := c.List(context.Background(), "fleet/", func(i bucket.Item) bool {
			table, rest, _ := strings.Cut(strings.TrimPrefix(i.Key, "fleet/"), "/")
			if !strings.HasPrefix(rest, "service=shop/date=20") || found[table] != "" {
				t.Errorf("object %s", i.Key)
			}
			found[table] = i.Key
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return len(found) == 3
	})
	dir := st.JVMs[0].Dir
	collections := stored[tables.CollectionRow](t, c, found["collections"])
	want := exported[tables.CollectionRow](t, dir, "collections")
	if len(collections) != len(want) || len(want) < 5 {
		t.Errorf("%d collections, exported %d", len(collections), len(want))
	}
	for i, w := range want[:min(len(want), len(collections))] {
		got := collections[i]
		w.Whose, got.ProbeNS = got.Whose, w.ProbeNS // the listing's cost is known later
		if !got.Known {
			w.Known, w.Objects, w.Bytes = false, 0, 0
		}
		if got != w {
			t.Errorf("collection %d: %+v, exported %+v", i, got, w)
		}
	}
	rows := stored[tables.SiteRow](t, c, found["sites"])
	if len(rows) == 0 || rows[0].Service != "shop" || rows[0].Version != "1.4" || rows[0].Host == "" {
		t.Fatalf("%+v", rows)
	}
	sameSites(t, rows, exported[tables.SiteRow](t, dir, "sites", "--at", fmt.Sprint(rows[0].GC)))
	stacks := map[string]string{}
	for _, r := range stored[tables.StackRow](t, c, found["stacks"]) {
		stacks[r.StackID] = r.Stack
	}
	for _, r := range exported[tables.StackRow](t, dir, "stacks", "--at", fmt.Sprint(rows[0].GC)) {
		if stacks[r.StackID] != r.Stack {
			t.Errorf("stack %s: %q, exported %q", r.StackID, stacks[r.StackID], r.Stack)
		}
	}
}

// sameSites compares what lives by class and site. What has no site is one row of its class.
func sameSites(t *testing.T, got, want []tables.SiteRow) {
	t.Helper()
	sums := func(rows []tables.SiteRow) map[string][2]uint64 {
		m := map[string][2]uint64{}
		for _, r := range rows {
			k := r.Class + " " + r.SiteID + " " + r.StackID
			if r.Bytes > 0 {
				m[k] = [2]uint64{m[k][0] + r.Objects, m[k][1] + r.Bytes}
			}
		}
		return m
	}
	near := func(a, b uint64) bool { return a <= b+2 && b <= a+2 } // rounded, and the rest in several parts
	g, w := sums(got), sums(want)
	for k, x := range w {
		if y := g[k]; !near(x[0], y[0]) || !near(x[1], y[1]) {
			t.Errorf("%s: %v, exported %v", k, y, x)
		}
	}
	if len(g) > len(w)+2 {
		t.Errorf("%d classes and sites, exported %d", len(g), len(w))
	}
	t.Logf("%d classes and sites after collection %d", len(g), got[0].GC)
}

func stored[T any](t *testing.T, c *s3.Client, key string) []T {
	t.Helper()
	o, err := c.Open(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[T](f, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %d rows, %d bytes", key, len(rows), len(b))
	return rows
}
