package web

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// data keeps what replaying has given, by version of the recording.
type data struct {
	s     *Server
	slots chan struct{} // replays at a time

	mu       sync.Mutex
	overview *once[json.RawMessage]
	version  string
	states   []kept   // at most maxStates, the newest last
	answers  []answer // at most maxAnswers, the newest last
}

// maxReplays bounds the replays at a time: each takes a core and a heap's state.
const maxReplays = 2

func (d *data) init(s *Server) {
	d.s, d.slots = s, make(chan struct{}, maxReplays)
}

// once is a result that several wait for and one makes.
type once[T any] struct {
	done chan struct{}
	v    T
	err  error
}

// begin makes f's result aside; it is not stopped when who asked first goes away.
func begin[T any](f func() (T, error)) *once[T] {
	o := &once[T]{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		o.v, o.err = f()
	}()
	return o
}

func (o *once[T]) wait(ctx context.Context) (v T, err error) {
	select {
	case <-o.done:
		return o.v, o.err
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// open hands f a function that opens the recording from its start, any number of times. What is being done is told to the page.
func (d *data) open(what string, f func(open func() *heap.Replayer) error) error {
	select {
	case d.slots <- struct{}{}:
	case <-d.s.ctx.Done():
		return d.s.ctx.Err()
	}
	defer func() { <-d.slots }()
	tell := d.s.hub.progress(what)
	defer tell(1, 1)
	var failed error
	var ins []*Input
	defer func() {
		for _, in := range ins {
			in.Close()
		}
	}()
	err := f(func() *heap.Replayer {
		in, err := d.s.cfg.Open(tell)
		if err != nil {
			failed = err
			return heap.NewReplayer(&stoppable{d.s.ctx, nothing{}})
		}
		ins = append(ins, in)
		r := heap.NewReplayer(&stoppable{d.s.ctx, in.Source})
		r.Damage = append(r.Damage, in.Problems...)
		return r
	})
	if failed != nil {
		return failed
	}
	return err
}

// replay opens the recording once and hands it to f.
func (d *data) replay(what string, f func(r *heap.Replayer) error) error {
	return d.open(what, func(open func() *heap.Replayer) error { return f(open()) })
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
	d := &s.data
	version, over := s.version()
	d.mu.Lock()
	o := d.overview
	if o == nil || d.version != version {
		d.version = version
		o = begin(func() (json.RawMessage, error) {
			v := Overview{Title: s.cfg.Title, Version: version, Live: !over, CanFreeze: s.cfg.Freeze != nil, CanPull: s.cfg.Pull != nil, Incidents: []ringstore.Incident{}}
			if s.cfg.Incidents != nil {
				v.Incidents = append(v.Incidents, s.cfg.Incidents()...)
			}
			report := func() (rep *analysis.Report, err error) {
				err = d.replay("reading the recording", func(r *heap.Replayer) (err error) {
					rep, err = analysis.MakeReport(r)
					return err
				})
				return rep, err
			}
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
			return json.Marshal(v)
		})
		d.overview = o
	}
	d.mu.Unlock()
	v, err := o.wait(r.Context())
	if err != nil {
		d.mu.Lock()
		if d.overview == o {
			select {
			case <-o.done: // the next one tries again
				d.overview = nil
			default:
			}
		}
		d.mu.Unlock()
	}
	return v, err
}

func (s *Server) version() (string, bool) {
	if s.cfg.Version == nil {
		return "", true
	}
	return s.cfg.Version()
}
