package tables

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/session"
	"github.com/heapcam/heapcam/internal/bucket"
	"github.com/heapcam/heapcam/internal/tables"
	"github.com/heapcam/heapcam/trace"
)

const (
	// takes is how many tables may wait to be gathered.
	takes = 256
	// settle is how long rows wait for those of other JVMs of the same interval.
	settle = 45 * time.Second
	// maxRows bounds the rows that wait for others, all services together.
	maxRows = 100_000
	// maxLeaks bounds the verdicts of one incident.
	maxLeaks = 100
)

// Config says how often tables are written, and where they go.
type Config struct {
	Every  time.Duration
	Out    string // folder for recordings
	To     bucket.Location
	Bucket bucket.Bucket
	Host   string // of this host
	Redact bool   // rows do not say whose they are, but for the recording's id
	Log    zerolog.Logger
}

// Status counts files.
type Status struct {
	Pending  int    // files that the bucket does not have yet
	Uploaded uint64 // files that it took
	Failed   uint64 // tries that failed
	Dropped  uint64 // files that no longer had room
	LeftOut  uint64 // rows that exceeded a bound
}

// Tables gathers rows and uploads them.
//
// Owner: the agent. Lifetime: from New to the end of Run's context. Concurrency: Take, Verdict and Status at any time;
// Run once.
type Tables struct {
	cfg     Config
	in      chan any // *session.Table or []tables.LeakRow
	leftOut atomic.Uint64
	queue   *queue
	now     func() time.Time // of tests
}

// New makes one. It sends nothing.
func New(cfg Config) *Tables {
	return &Tables{cfg: cfg, in: make(chan any, takes), queue: newQueue(cfg), now: time.Now}
}

// Every is the time between two tables of a JVM.
func (t *Tables) Every() time.Duration { return t.cfg.Every }

// Status says how far it is.
func (t *Tables) Status() Status {
	st := t.queue.status()
	st.LeftOut = t.leftOut.Load()
	return st
}

// Take takes the rows of a JVM, or drops them if too many wait. It never waits.
func (t *Tables) Take(x *session.Table) {
	t.leftOut.Add(x.LeftOut)
	t.take(x, len(x.Sites)+len(x.Collections))
}

// Verdict takes the verdict on an incident of a recording.
func (t *Tables) Verdict(r trace.Resource, recording string, at time.Time, leaks []session.Leak) {
	v := verdict{of: r, recording: recording}
	for _, l := range leaks[:min(len(leaks), maxLeaks)] {
		v.rows = append(v.rows, tables.LeakRow{TimeMS: at.UnixMilli(), OnsetFromMS: l.OnsetFrom.UnixMilli(),
			OnsetToMS: l.OnsetTo.UnixMilli(), Kind: l.Kind, Class: l.Class, SiteID: l.SiteID, StackID: l.StackID,
			Confidence: l.Confidence, BytesPerSecond: l.BytesPerSecond, GrownBytes: l.GrownBytes,
			Sentence: l.Sentence})
		if l.Stack != "" {
			v.stacks = append(v.stacks, tables.StackRow{StackID: l.StackID, Stack: l.Stack})
		}
	}
	t.leftOut.Add(uint64(len(leaks) - len(v.rows)))
	if len(v.rows) > 0 {
		t.take(&v, len(v.rows))
	}
}

type verdict struct {
	of        trace.Resource
	recording string
	rows      []tables.LeakRow
	stacks    []tables.StackRow
}

func (t *Tables) take(x any, rows int) {
	select {
	case t.in <- x:
	default:
		t.leftOut.Add(uint64(rows))
	}
}

// Run gathers and uploads until ctx is done. Then what was gathered is a file, which a later agent uploads.
func (t *Tables) Run(ctx context.Context) {
	t.queue.load()
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.queue.run(ctx)
	}()
	defer func() { <-done }()
	g := gathered{}
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			for len(t.in) > 0 {
				t.add(g, <-t.in)
			}
			t.flush(g)
			return
		case x := <-t.in:
			if t.add(g, x); g.rows() > maxRows {
				t.flush(g)
				g, due = gathered{}, nil
			} else if due == nil {
				due = time.After(settle)
			}
		case <-due:
			t.flush(g)
			g, due = gathered{}, nil
		}
	}
}

// rows are those of one service.
type rows struct {
	recording   string // the first one
	sites       []tables.SiteRow
	stacks      []tables.StackRow
	leaks       []tables.LeakRow
	collections []tables.CollectionRow
}

// gathered are rows that wait, by service.
type gathered map[string]*rows

func (g gathered) rows() (n int) {
	for _, r := range g {
		n += len(r.sites) + len(r.stacks) + len(r.leaks) + len(r.collections)
	}
	return n
}

func (g gathered) of(service, recording string) *rows {
	r := g[service]
	if r == nil {
		r = &rows{recording: recording}
		g[service] = r
	}
	return r
}

// add takes in rows, and says whose they are.
func (t *Tables) add(g gathered, x any) {
	switch x := x.(type) {
	case *session.Table:
		who := t.whose(x.Of.Resource, x.Of.Session, x.Of.Name)
		r := g.of(who.Service, who.Recording)
		for i := range x.Sites {
			x.Sites[i].Whose = who
		}
		for i := range x.Collections {
			x.Collections[i].Whose = who
		}
		r.sites, r.stacks = append(r.sites, x.Sites...), append(r.stacks, x.Stacks...)
		r.collections = append(r.collections, x.Collections...)
	case *verdict:
		who := t.whose(x.of, x.recording, x.of[trace.AttrService])
		r := g.of(who.Service, who.Recording)
		for i := range x.rows {
			x.rows[i].Whose = who
		}
		r.leaks, r.stacks = append(r.leaks, x.rows...), append(r.stacks, x.stacks...)
	}
}

// whose gives whose the rows of a JVM are. With upload_redact, of the file or of a rule, only the recording is named.
func (t *Tables) whose(r trace.Resource, recording, name string) tables.Whose {
	if t.cfg.Redact || r.Redacted() {
		return tables.Whose{Recording: recording}
	}
	w := tables.Of(r, recording)
	w.Service, w.Host = cmp.Or(w.Service, trace.CleanAttr(name)), cmp.Or(w.Host, t.cfg.Host)
	return w
}

// flush writes what was gathered into files that wait for the bucket.
func (t *Tables) flush(g gathered) {
	at := t.now().UTC()
	for service, r := range g {
		r.stacks = distinct(r.stacks)
		put := func(table string, b []byte, err error) {
			if err == nil && b != nil {
				err = t.queue.put(t.key(table, service, r.recording, at), b)
			}
			if err != nil {
				logs.Write(&t.cfg.Log, logs.TableNotWritten, logs.Err.Of(err))
			}
		}
		for table, of := range map[string]func(string) ([]byte, error){
			"sites":       func(s string) ([]byte, error) { return file(s, r.sites) },
			"stacks":      func(s string) ([]byte, error) { return file(s, r.stacks) },
			"leaks":       func(s string) ([]byte, error) { return file(s, r.leaks) },
			"collections": func(s string) ([]byte, error) { return file(s, r.collections) },
		} {
			b, err := of(table)
			put(table, b, err)
		}
	}
}

// distinct gives each stack once.
func distinct(all []tables.StackRow) []tables.StackRow {
	slices.SortFunc(all, func(a, b tables.StackRow) int { return cmp.Compare(a.StackID, b.StackID) })
	return slices.CompactFunc(all, func(a, b tables.StackRow) bool { return a.StackID == b.StackID })
}

// file gives a Parquet file; nil: there are no rows.
func file[T any](table string, rows []T) ([]byte, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	w := tables.NewParquet[T](&b, tables.Schema(table))
	for _, r := range rows {
		if err := w.Put(r); err != nil {
			return nil, err
		}
	}
	err := w.End()
	return b.Bytes(), err
}

// key is the name of a file in the bucket, below the prefix. The recording tells hosts of one name apart.
func (t *Tables) key(table, service, recording string, at time.Time) string {
	host := t.cfg.Host
	if service == "" { // nothing is named
		host = "_"
	}
	name := fmt.Sprintf("%s-%s-%s.parquet", bucket.Plain(host), at.Format("20060102T150405.000Z"),
		bucket.Plain(recording[:min(len(recording), 12)]))
	return path.Join(table, "service="+bucket.Plain(service), "date="+at.Format(time.DateOnly),
		name)
}
