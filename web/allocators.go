package web

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/heap"
)

// maxThreads is how many threads an answer names.
const maxThreads = 50

// costReply is the answer to api/cost.
type costReply struct {
	Cost    *cost.Cost  `json:"cost"`    // as `heapcam cost --json`
	Threads []allocator `json:"threads"` // with the most allocated bytes, estimated from samples
	Rest    *allocator  `json:"rest,omitempty"`
	All     int         `json:"all"`     // number of threads with samples
	FromMS  float64     `json:"from_ms"` // wall time of the first bucket
	StepMS  float64     `json:"step_ms"` // length of a bucket
}

// allocator is what one thread allocated, or all threads of one name.
type allocator struct {
	Thread  string    `json:"thread"`
	Bytes   float64   `json:"bytes"`
	Samples uint64    `json:"samples"`
	Over    []float32 `json:"over"` // bytes by bucket of time
	Counts  []uint32  `json:"counts"`
}

// cost answers with what heapcam cost, and who allocated.
func (s *Server) cost(r *http.Request) (any, error) {
	return s.data.keep(r.Context(), "cost", func(ctx context.Context) (any, error) {
		if rep := s.timeline(ctx).costs(ctx); rep != nil {
			return *rep, nil
		}
		took := cost.New()
		open := s.cfg.OpenCensus
		if open == nil {
			open = s.cfg.Open
		}
		by := newAllocators()
		var rep costReply
		err := opened(ctx, &s.data, "Adding up the cost", metering(open, took), heap.NewCensus,
			func(open func() *heap.Census) error {
				c := open()
				for {
					_, err := c.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						return err
					}
					by.take(c.Sampled)
				}
				rep = by.reply(c.Symbols)
				return nil
			})
		if err != nil {
			return nil, err
		}
		took.Close()
		rep.Cost = took
		return rep, nil
	})
}

// buckets is the most buckets of time that allocators has: when more are needed, two become one.
const buckets = 240

// allocators adds up samples by thread and time.
type allocators struct {
	first uint64 // the time of bucket 0, in ns
	step  uint64
	has   bool
	by    map[uint64]*allocator
}

func newAllocators() *allocators { return &allocators{step: 1 << 26, by: map[uint64]*allocator{}} }

// take adds the samples of a collection.
func (a *allocators) take(taken []*heap.Sample) {
	for _, x := range taken {
		a.add(x.Thread, x.Time, float64(x.Size)*x.Weight)
	}
}

func (a *allocators) add(thread, at uint64, bytes float64) {
	if !a.has {
		a.first, a.has = at, true
	}
	at = max(at, a.first) - a.first
	for at/a.step >= buckets {
		a.halve()
	}
	t := a.by[thread]
	if t == nil {
		t = &allocator{}
		a.by[thread] = t
	}
	t.put(int(at/a.step), bytes, 1)
}

func (t *allocator) put(i int, bytes float64, samples uint64) {
	for len(t.Over) <= i {
		t.Over, t.Counts = append(t.Over, 0), append(t.Counts, 0)
	}
	t.Bytes, t.Samples = t.Bytes+bytes, t.Samples+samples
	t.Over[i] += float32(bytes)
	t.Counts[i] += uint32(samples)
}

// halve makes one bucket of two.
func (a *allocators) halve() {
	a.step *= 2
	for _, t := range a.by {
		n := (len(t.Over) + 1) / 2
		for i := range n {
			over, count := t.Over[2*i], t.Counts[2*i]
			if 2*i+1 < len(t.Over) {
				over, count = over+t.Over[2*i+1], count+t.Counts[2*i+1]
			}
			t.Over[i], t.Counts[i] = over, count
		}
		t.Over, t.Counts = t.Over[:n], t.Counts[:n]
	}
}

// reply names the threads, and joins those of one name.
func (a *allocators) reply(s *heap.Symbols) costReply {
	named := map[string]*allocator{}
	for id, t := range a.by {
		name := cmp.Or(s.Threads[id].Name, "(unnamed)")
		n := named[name]
		if n == nil {
			n = &allocator{Thread: name}
			named[name] = n
		}
		n.join(t)
	}
	all := make([]allocator, 0, len(named))
	for _, n := range named {
		all = append(all, *n)
	}
	slices.SortFunc(all, func(x, y allocator) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Thread, y.Thread))
	})
	rep := costReply{Threads: all[:min(len(all), maxThreads)], All: len(all),
		FromMS: float64(collection.Wall(s, a.first).UnixMicro()) / 1e3, StepMS: float64(a.step) / 1e6}
	if len(all) > maxThreads {
		rep.Rest = &allocator{}
		for i := range all[maxThreads:] {
			rep.Rest.join(&all[maxThreads+i])
		}
	}
	return rep
}

func (t *allocator) join(o *allocator) {
	for i, v := range o.Over {
		t.put(i, float64(v), uint64(o.Counts[i]))
	}
}
