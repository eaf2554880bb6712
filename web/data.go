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
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// data keeps what replaying has given, by version of the recording.
type data struct {
	s     *Server
	slots chan struct{} // replays at a time

	overview cache[json.RawMessage]
	tapes    cache[*tape]
	states   cache[*state]
	counts   cache[*state]           // that tell types and lengths alone
	tuples   cache[[]classify.Tuple] // of states
	groups   cache[*grouping]        // of states
	answers  cache[any]              // diffs, trends
	grouping sync.Mutex              // one grouping at a time: states share what they know of names
}

// maxReplays bounds the replays at a time: each takes a core and a heap's state.
const maxReplays = 2

func (d *data) init(s *Server) {
	d.s, d.slots = s, make(chan struct{}, maxReplays)
	for _, ctx := range []*context.Context{&d.overview.ctx, &d.tapes.ctx, &d.states.ctx, &d.counts.ctx, &d.tuples.ctx,
		&d.groups.ctx, &d.answers.ctx} {
		*ctx = s.ctx
	}
	d.overview.most, d.tapes.most, d.states.most, d.counts.most = 1, 1, maxStates, maxStates
	d.tuples.most, d.groups.most, d.answers.most = maxTuples, maxGroupings, maxAnswers
}

// once is a result that several wait for and one makes.
type once[T any] struct {
	done chan struct{}
	v    T
	err  error

	mu      sync.Mutex
	waiting int
	stop    context.CancelFunc
}

// lonely is how long a result is made on though nobody waits for it: who loads the page anew comes back.
const lonely = 2 * time.Second

// begin makes f's result aside. It is stopped with the server, or when nobody has waited for it for a while.
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
			time.AfterFunc(lonely, func() {
				if o.count(0) == 0 {
					o.stop()
				}
			})
		}
	}()
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

// cache keeps what was made, by what was asked for, and makes each once. What failed is made anew for who asks next.
type cache[T any] struct {
	ctx  context.Context // ends all
	most int
	mu   sync.Mutex
	kept []entry[T] // at most most, that used last at the end
}

type entry[T any] struct {
	key string
	o   *once[T]
}

// get gives what key stands for, or has it made.
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
	if err != nil {
		c.mu.Lock()
		select {
		case <-e.o.done:
			c.kept = slices.DeleteFunc(c.kept, func(x entry[T]) bool { return x.o == e.o })
		default:
		}
		c.mu.Unlock()
		// those who waited before had left
		if errors.Is(err, context.Canceled) && ctx.Err() == nil && c.ctx.Err() == nil {
			return c.get(ctx, key, make)
		}
	}
	return v, err
}

// open hands f a function that opens the recording from its start, any number of times. What is being done is told to
// the page. It ends with ctx.
func (d *data) open(ctx context.Context, what string, f func(open func() *heap.Replay) error) error {
	return opened(ctx, d, what, d.s.cfg.Open, heap.NewReplay, f)
}

// opened is open by a function of Config's.
func opened[R heap.Reader](
	ctx context.Context,
	d *data,
	what string,
	input func(func(done, total int64)) (*Input, error),
	reader func(heap.BlockSource) R,
	f func(open func() R) error,
) error {
	select {
	case d.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-d.slots }()
	tell := d.s.hub.progress(what, "")
	defer tell(1, 1)
	var failed error
	var ins []*Input
	defer func() {
		for _, in := range ins {
			in.Close()
		}
	}()
	err := f(func() R {
		in, err := input(tell)
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
	if ctx.Err() != nil { // what was read so far looks whole
		return ctx.Err()
	}
	return err
}

// replay opens the recording once and hands it to f.
func (d *data) replay(ctx context.Context, what string, f func(r *heap.Replay) error) error {
	return d.open(ctx, what, func(open func() *heap.Replay) error { return f(open()) })
}

// nothing is a recording that could not be opened.
type nothing struct{}

func (nothing) Next() (trace.Block, error) { return trace.Block{}, io.EOF }

// stoppable ends a replay with the server.
type stoppable struct {
	ctx context.Context
	src heap.BlockSource
}

func (s *stoppable) Next() (trace.Block, error) {
	if err := s.ctx.Err(); err != nil {
		return trace.Block{}, err // asked often enough the replay gives up
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
}

// overview answers from memory unless the recording has grown.
func (s *Server) overview(r *http.Request) (any, error) {
	version, over := s.version()
	return s.data.overview.get(r.Context(), version, func(ctx context.Context) (json.RawMessage, error) {
		v := Overview{Title: s.cfg.Title, Version: version, Live: !over, CanFreeze: s.cfg.Freeze != nil,
			CanPull: s.cfg.Pull != nil, Incidents: []ringstore.Incident{}}
		if s.cfg.Incidents != nil {
			v.Incidents = append(v.Incidents, s.cfg.Incidents()...)
		}
		report := func() (*analysis.Report, error) { return s.data.report(ctx) }
		var err error
		if s.cfg.Report != nil {
			v.Report, err = s.cfg.Report(report)
		} else {
			v.Report, err = report()
		}
		if err != nil {
			return nil, err
		}
		v.Headlines = headlines(v.Report)
		time.AfterFunc(soon, func() { s.tape(s.ctx) })
		return json.Marshal(v)
	})
}

// report reads the whole recording, as `heapcam report` does: it counts first, and follows objects if that is not
// enough.
func (d *data) report(ctx context.Context) (rep *analysis.Report, err error) {
	const what = "reading the recording"
	if d.s.cfg.Skim != nil {
		if err := opened(ctx, d, what, d.s.cfg.Skim, heap.NewCensus, func(open func() *heap.Census) error {
			r := open()
			made, err := analysis.MakeReport(r)
			if err == nil && !r.Unsure {
				rep = made
			}
			return err
		}); err != nil || rep != nil && !rep.Open {
			return rep, err
		}
	}
	err = d.replay(ctx, what, func(r *heap.Replay) (err error) {
		if rep == nil {
			rep, err = analysis.MakeReport(r)
			return err
		}
		l, err := leak.Find(r)
		if err == nil {
			rep.Settle(l.Verdicts)
		}
		return err
	})
	return rep, err
}

func (s *Server) version() (string, bool) {
	if s.cfg.Version == nil {
		return "", true
	}
	return s.cfg.Version()
}

// soon is how long after the overview the rest is read: the page is drawn first.
const soon = time.Second

// tape gives the states of a recording that does not grow; nil if it does.
func (s *Server) tape(ctx context.Context) *tape {
	version, over := s.version()
	if !over {
		return nil
	}
	t, _ := s.data.tapes.get(ctx, version, func(context.Context) (*tape, error) { return s.data.newTape(), nil })
	return t
}
