package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/trace"
)

// fake is a bucket that fails as a test says.
type fake struct {
	mu   sync.Mutex
	has  map[string][]byte
	puts int
	fail func(puts int) (kept bool, err error) // nil: it works
}

func (f *fake) Put(_ context.Context, key string, source func(io.Writer) error, _ bucket.Put) (bucket.Done, error) {
	var b bytes.Buffer
	if err := source(&b); err != nil {
		return bucket.Done{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts++
	if _, ok := f.has[key]; ok {
		return bucket.Done{}, bucket.ErrExists
	}
	if f.fail != nil {
		if kept, err := f.fail(f.puts); err != nil {
			if kept {
				f.has[key] = b.Bytes()
			}
			return bucket.Done{}, err
		}
	}
	f.has[key] = b.Bytes()
	return bucket.Done{Bytes: int64(b.Len())}, nil
}

func (f *fake) Stat(context.Context, string) (bucket.Item, map[string]string, error) {
	return bucket.Item{}, nil, fs.ErrNotExist
}

func (f *fake) keys() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for k := range f.has {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func jvm(service string) *session.Table {
	return &session.Table{Of: session.Status{Name: "Main", Session: "00112233445566778899aabbccddeeff",
		Resource: trace.Resource{trace.AttrService: service, trace.AttrVersion: "1.4", trace.AttrPod: "p-0"}},
		Sites: []tables.SiteRow{{Class: "A", SiteID: "1", StackID: "s", Bytes: 7},
			{Class: "B", SiteID: "2", StackID: "s", Bytes: 8}},
		Stacks:      []tables.StackRow{{StackID: "s", Stack: "A.a"}},
		Collections: []tables.CollectionRow{{GC: 1}, {GC: 2}, {GC: 3}}, LeftOut: 2}
}

func newTables(t *testing.T, out string, b bucket.Bucket, log io.Writer) *Tables {
	to, err := bucket.Parse("s3://fleet/prod")
	if err != nil {
		t.Fatal(err)
	}
	x := New(Config{Every: time.Minute, Out: out, To: to, Bucket: b, Host: "db 7", Log: zerolog.New(log)})
	x.now = func() time.Time { return time.Date(2026, 11, 26, 23, 59, 59, 5e6, time.UTC) }
	return x
}

// upload runs the queue until the bucket has everything, or want tries have failed. Time passes at once.
func (q *queue) settle(t *testing.T, failures uint64) (waited time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	q.wait = func(_ context.Context, d time.Duration) {
		if waited += d; q.status().Failed >= failures {
			stop()
		}
	}
	go func() {
		for ctx.Err() == nil && (q.status().Pending > 0 || q.status().Uploaded == 0) {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	q.run(ctx)
	return waited
}

// TestTables: rows of several JVMs of a service are one file of each table below their service and day, whose columns
// say whose they are; a hostile name chooses no other folder.
func TestTables(t *testing.T) {
	b := &fake{has: map[string][]byte{}}
	var log bytes.Buffer
	x := newTables(t, t.TempDir(), b, &log)
	g := gathered{}
	x.add(g, jvm("orders"))
	x.add(g, jvm("orders"))
	x.add(g, jvm("../../x\n"))
	x.Verdict(trace.Resource{trace.AttrService: "orders"}, "00ff", time.UnixMilli(5), []session.Leak{
		{Kind: "leak", Class: "A", SiteID: "1", StackID: "t", Stack: "T.t", BytesPerSecond: 3}})
	x.add(g, <-x.in)
	x.flush(g)
	x.queue.settle(t, 1)
	want := []string{}
	for _, table := range []string{"collections", "leaks", "sites", "stacks"} {
		for _, s := range []string{"_.._x_", "orders"} {
			if table != "leaks" || s == "orders" {
				want = append(want, fmt.Sprintf("prod/%s/service=%s/date=2026-11-26/db_7-20261126T235959.005Z-"+
					"001122334455.parquet", table, s))
			}
		}
	}
	if got := b.keys(); !slices.Equal(got, want) {
		t.Fatalf("%s\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), log.String())
	}
	sites := read[tables.SiteRow](t, b.has[want[4]])
	if len(sites) != 4 || sites[0].Service != "orders" || sites[0].Version != "1.4" || sites[0].Pod != "p-0" ||
		sites[0].Host != "db 7" {
		t.Errorf("%+v", sites)
	}
	if s := read[tables.StackRow](t, b.has[want[6]]); len(s) != 2 {
		t.Errorf("stacks: %v", s)
	}
	if l := read[tables.LeakRow](t, b.has[want[2]]); len(l) != 1 || l[0].TimeMS != 5 || l[0].Recording != "00ff" {
		t.Errorf("leaks: %+v", l)
	}
	x.Take(jvm("orders"))
	if n := x.Status().LeftOut; n != 2 {
		t.Errorf("%d rows left out", n)
	}
}

func read[T any](t *testing.T, b []byte) []T {
	t.Helper()
	rows, err := parquet.Read[T](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRedact: rows of an agent with upload_redact, or of a JVM of which a rule says so, name no service, host, pod or
// version, and neither does a key.
func TestRedact(t *testing.T) {
	t.Run("all", func(t *testing.T) { redacted(t, true, jvm("orders")) })
	one := jvm("orders")
	one.Of.Resource[trace.AttrRedact] = "true"
	t.Run("by rule", func(t *testing.T) { redacted(t, false, one) })
}

func redacted(t *testing.T, all bool, jvm *session.Table) {
	b := &fake{has: map[string][]byte{}}
	x := newTables(t, t.TempDir(), b, io.Discard)
	x.cfg.Redact = all
	g := gathered{}
	x.add(g, jvm)
	x.flush(g)
	x.queue.settle(t, 1)
	for _, k := range b.keys() {
		if strings.Contains(k, "orders") || strings.Contains(k, "db") {
			t.Error(k)
		}
		if strings.HasPrefix(k, "prod/sites/") {
			for _, r := range read[tables.SiteRow](t, b.has[k]) {
				if r.Whose != (tables.Whose{Recording: r.Recording}) {
					t.Errorf("%+v", r)
				}
			}
		}
	}
	if len(b.keys()) != 3 {
		t.Error(b.keys())
	}
}

// TestOutage: while the bucket is away for hours, files wait within the bounds, the oldest make room and are counted,
// the log has one line of each kind; when it is back, each file is there once. A lost answer is no second object, and a
// later agent continues.
func TestOutage(t *testing.T) {
	dir := t.TempDir()
	b := &fake{has: map[string][]byte{}, fail: func(int) (bool, error) { return false, errors.New("507 full") }}
	var log bytes.Buffer
	x := newTables(t, dir, b, &log)
	const files, size = 20, MaxQueue / 16
	for i := range files {
		key := fmt.Sprintf("sites/service=s/date=2026-11-26/%02d.parquet", i)
		if err := x.queue.put(key, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
	}
	waited := x.queue.settle(t, 30)
	st := x.Status()
	if st.Pending != 16 || st.Dropped != files-16 || st.Failed != 30 || st.Uploaded != 0 || waited < 2*time.Hour {
		t.Errorf("%+v after %v", st, waited)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	b.fail = func(puts int) (bool, error) {
		if puts%3 == 0 {
			return true, io.ErrUnexpectedEOF // it has the object, and the answer is lost
		}
		return false, nil
	}
	y := newTables(t, dir, b, &log)
	y.queue.load()
	y.queue.settle(t, 1000)
	if st := y.Status(); st.Pending != 0 || st.Uploaded != 16 || len(b.has) != 16 {
		t.Errorf("%+v, %d objects", st, len(b.has))
	}
	left, _ := filepath.Glob(filepath.Join(dir, Folder, "*"))
	if len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
