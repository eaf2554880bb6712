package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// data caches the results of replays, by version of the recording.
type data struct {
	s     *Server
	slots chan struct{} // one for each replay that runs
	long  chan struct{} // held by the one long replay: others need not wait for it

	overview  cache[json.RawMessage]
	timelines cache[*timeline]
	states    cache[*state]
	counts    cache[*state]           // states that hold only types and lengths
	tuples    cache[[]classify.Tuple] // by state
	groups    cache[*groups]          // by state
	flows     cache[*flows]           // by state
	answers   cache[any]              // diffs, trends
	graphs    cache[*retention.Heap]  // the newest reference listing
	growing   growing                 // the report of a recording that grows
	grouping  sync.Mutex              // held by the one grouping that runs: it takes a processor
}

// maxReplays is how many replays run at a time. Each uses a core, and memory for a heap state.
const maxReplays = 2

func (d *data) init(s *Server) {
	d.s, d.slots, d.long = s, make(chan struct{}, maxReplays), make(chan struct{}, 1)
	for _, ctx := range []*context.Context{&d.overview.ctx, &d.timelines.ctx, &d.states.ctx, &d.counts.ctx,
		&d.tuples.ctx, &d.groups.ctx, &d.flows.ctx, &d.answers.ctx, &d.graphs.ctx} {
		*ctx = s.ctx
	}
	d.graphs.most = 1
	d.flows.room, d.flows.size = maxFlowBytes, (*flows).size
	d.overview.most, d.timelines.most, d.states.most, d.counts.most = 1, 1, maxStates, maxStates
	d.tuples.most, d.groups.most, d.flows.most, d.answers.most = maxTuples, maxGroupings, maxFlows, maxAnswers
}

// once is a result that is computed once, for several requests that wait for it.
type once[T any] struct {
	done chan struct{}
	v    T
	err  error

	mu      sync.Mutex
	waiting int
	stop    context.CancelFunc
}

// abandonAfter is how long a result is computed although no request waits for it. A page that is reloaded asks again.
const abandonAfter = 2 * time.Second

// begin computes f's result in the background. f is cancelled with ctx, or when no request has waited for abandonAfter.
func begin[T any](ctx context.Context, f func(context.Context) (T, error)) *once[T] {
	ctx, stop := context.WithCancel(ctx)
	o := &once[T]{done: make(chan struct{}), stop: stop}
	go func() {
		defer stop()
		defer close(o.done)
		o.v, o.err = f(ctx)
	}()
	return o
}

func (o *once[T]) wait(ctx context.Context) (v T, err error) {
	o.count(1)
	defer func() {
		if o.count(-1) == 0 {
			time.AfterFunc(abandonAfter, func() {
				if o.count(0) == 0 {
					o.stop()
				}
			})
		}
	}()
	select {
	case <-o.done: // whether the request waits or not
		return o.v, o.err
	default:
	}
	select {
	case <-o.done:
		return o.v, o.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

func (o *once[T]) count(by int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting += by
	return o.waiting
}

// cache keeps results by key and computes each once. After a failure the next request computes the result again.
type cache[T any] struct {
	ctx  context.Context // cancels all computations
	most int
	room int         // bytes of all results but the newest one, roughly
	size func(T) int // of a result in bytes; nil: it is not asked for
	mu   sync.Mutex
	kept []entry[T] // at most most entries; the last one is the most recently used
}

type entry[T any] struct {
	key string
	o   *once[T]
}

// get returns the result of key, or of make if there is none.
func (c *cache[T]) get(ctx context.Context, key string, make func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	i := slices.IndexFunc(c.kept, func(e entry[T]) bool { return e.key == key })
	if i < 0 {
		if len(c.kept) >= c.most {
			c.kept = slices.Delete(c.kept, 0, 1)
		}
		c.kept = append(c.kept, entry[T]{key, begin(c.ctx, make)})
		i = len(c.kept) - 1
	}
	e := c.kept[i]
	c.kept = append(slices.Delete(c.kept, i, i+1), e)
	c.mu.Unlock()
	v, err := e.o.wait(ctx)
	if err == nil && c.size != nil {
		c.shrink()
	}
	if err != nil {
		c.mu.Lock()
		select {
		case <-e.o.done:
			if e.o.err == nil { // it ended after the request, and others want it
				break
			}
			c.kept = slices.DeleteFunc(c.kept, func(x entry[T]) bool { return x.o == e.o })
		default:
		}
		c.mu.Unlock()
		// the requests that waited before have ended, and with them the computation
		if errors.Is(err, context.Canceled) && ctx.Err() == nil && c.ctx.Err() == nil {
			return c.get(ctx, key, make)
		}
	}
	return v, err
}

// shrink drops the results that were used least recently until the others have room.
func (c *cache[T]) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for i := len(c.kept) - 1; i >= 0; i-- {
		select {
		case <-c.kept[i].o.done:
			if c.kept[i].o.err == nil {
				sum += c.size(c.kept[i].o.v)
			}
		default:
		}
		if sum > c.room && i < len(c.kept)-1 {
			c.kept = slices.Delete(c.kept, 0, i+1)
			return
		}
	}
}

// open calls f with a function that opens the recording from its start, any number of times. The page shows what, the
// name of the work, and its progress. The work ends with ctx.
func (d *data) open(ctx context.Context, what string, f func(open func() *heap.Replay) error) error {
	return opened(ctx, d, what, d.s.cfg.Open, heap.NewReplay, f)
}

// replayLong is replay for work that takes long.
func (d *data) replayLong(ctx context.Context, what string, f func(r *heap.Replay) error) error {
	return openedIn(ctx, d, d.long, what, d.s.cfg.Open, heap.NewReplay, func(open func() *heap.Replay) error {
		return f(open())
	})
}

// opened is open for one of Config's functions that open a recording.
func opened[R heap.Reader](
	ctx context.Context,
	d *data,
	what string,
	input func(func(done, total int64)) (*Input, error),
	reader func(heap.BlockSource) R,
	f func(open func() R) error,
) error {
	return openedIn(ctx, d, d.slots, what, input, reader, f)
}

// openedIn is opened with a place among those of slots.
func openedIn[R heap.Reader](
	ctx context.Context,
	d *data,
	slots chan struct{},
	what string,
	input func(func(done, total int64)) (*Input, error),
	reader func(heap.BlockSource) R,
	f func(open func() R) error,
) error {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-slots }()
	report := d.s.hub.progress(what, "")
	defer report(1, 1)
	var failed error
	var ins []*Input
	defer func() {
		for _, in := range ins {
			in.Close()
		}
	}()
	err := f(func() R {
		in, err := input(report)
		if err != nil {
			failed = err
			return reader(&stoppable{ctx, nothing{}})
		}
		ins = append(ins, in)
		r := reader(&stoppable{ctx, in.Source})
		p := r.Position()
		p.Damage = append(p.Damage, in.Problems...)
		return r
	})
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil { // a replay that was cancelled looks complete
		return ctx.Err()
	}
	return err
}

// replay opens the recording once and calls f with it.
func (d *data) replay(ctx context.Context, what string, f func(r *heap.Replay) error) error {
	return d.open(ctx, what, func(open func() *heap.Replay) error { return f(open()) })
}

// nothing is the empty source of a recording that could not be opened.
type nothing struct{}

func (nothing) Next() (trace.Block, error) { return trace.Block{}, io.EOF }

// stoppable ends a replay when its context ends.
type stoppable struct {
	ctx context.Context
	src heap.BlockSource
}

func (s *stoppable) Next() (trace.Block, error) {
	if err := s.ctx.Err(); err != nil {
		return trace.Block{}, err // the replay stops after a number of failed reads
	}
	return s.src.Next()
}

// Overview is the answer to api/overview.
type Overview struct {
	Title     string               `json:"title"`
	Version   string               `json:"version"`
	Live      bool                 `json:"live"`
	CanFreeze bool                 `json:"can_freeze"`
	CanPull   bool                 `json:"can_pull"`
	Headlines []Headline           `json:"headlines"`
	Report    *analysis.Report     `json:"report"` // as `heapcam report --json`
	Incidents []ringstore.Incident `json:"incidents"`
	Home      string               `json:"home,omitempty"`   // address of the list of all recordings
	Settle    string               `json:"settle,omitempty"` // how long settling may stop the JVM; "": it cannot
	Before    *Earlier             `json:"before,omitempty"` // the recording that this one is compared with
	// Early says that Report has only what the collections took: pauses, and how full the spaces were.
	Early bool `json:"early,omitempty"`
}

// Earlier names the recording from before a change.
type Earlier struct {
	Title string `json:"title"`
}

// overview answers from the cache unless the recording has grown.
func (s *Server) overview(r *http.Request) (any, error) { return s.overviewNow(r.Context()) }

func (s *Server) overviewNow(ctx context.Context) (any, error) {
	version, over := s.version()
	return s.data.overview.get(ctx, version, func(ctx context.Context) (json.RawMessage, error) {
		v := Overview{Title: s.cfg.Title, Version: version, Live: !over, CanFreeze: s.cfg.Freeze != nil,
			CanPull: s.cfg.Pull != nil, Incidents: []ringstore.Incident{}}
		if s.cfg.Incidents != nil {
			v.Incidents = append(v.Incidents, s.cfg.Incidents()...)
		}
		if s.before != nil {
			v.Before = &Earlier{s.before.cfg.Title}
		}
		v.Home = s.cfg.Home
		if s.cfg.Settle != nil && !over {
			v.Settle = duration(s.cfg.SettleMost)
		}
		var err error
		if v.Report, err = s.report(ctx); err != nil {
			return nil, err
		}
		v.Headlines = headlines(v.Report)
		time.AfterFunc(prefetchDelay, func() { s.timeline(s.ctx) })
		return json.Marshal(v)
	})
}

// report returns the report, from where Config keeps it or by reading the recording. The first reading begins when the
// outline is there: both at once would keep the page empty for longer.
func (s *Server) report(ctx context.Context) (*analysis.Report, error) {
	read := func() (*analysis.Report, error) {
		if s.outlined.CompareAndSwap(false, true) {
			_, _ = s.outline(ctx) // a page that asks for it gets the error
		}
		if rep, err := s.data.growing.report(s); rep != nil || err != nil {
			return rep, err
		}
		return s.data.report(ctx)
	}
	if s.cfg.Report != nil {
		return s.cfg.Report(read)
	}
	return read()
}

func (s *Server) version() (string, bool) {
	if s.cfg.Version == nil {
		return "", true
	}
	return s.cfg.Version()
}

// prefetchDelay is the time from the overview's answer to reading the heap states: the page is drawn first.
const prefetchDelay = time.Second

// timeline returns the states of a recording; nil if it still grows and cannot be followed.
func (s *Server) timeline(ctx context.Context) *timeline {
	version, over := s.version()
	if s.cfg.Follow != nil {
		version = ""
	} else if !over {
		return nil
	}
	t, _ := s.data.timelines.get(ctx, version,
		func(context.Context) (*timeline, error) {
			if f := s.thrift.Load(); f != nil {
				(*f)()
			}
			return s.data.newTimeline(), nil
		})
	return t
}
