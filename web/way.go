package web

import (
	"sync"
	"time"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// way makes other work wait while a page waits for its first heap state. A link to a heap state is opened for that
// state: with two processors, the overview and later states would double the time until it is there.
type way struct {
	begin sync.Once
	clear chan struct{} // closed when nobody needs to wait
	mu    sync.Mutex
	parts int // answers to come
}

// wayParts is how many answers the page needs for a state, its table and its flame graph, and wayMost how long others
// wait for them.
const (
	wayParts = 2
	wayMost  = 3 * time.Second
)

// ask says that a page waits. Only the first page is waited for.
func (w *way) ask() {
	w.begin.Do(func() {
		clear := make(chan struct{})
		w.mu.Lock()
		w.clear, w.parts = clear, wayParts
		w.mu.Unlock()
		time.AfterFunc(wayMost, w.end)
	})
}

// end lets the others go on, whatever the page still waits for.
func (w *way) end() { w.drop(wayParts) }

// answered says that the page has one of its answers.
func (w *way) answered() { w.drop(1) }

// drop says that the page does not wait for n answers any more.
func (w *way) drop(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.parts > 0 && w.parts <= n {
		close(w.clear)
	}
	w.parts = max(0, w.parts-n)
}

// give waits while a page waits, or until over is closed.
func (w *way) give(over <-chan struct{}) {
	w.mu.Lock()
	clear := w.clear
	w.mu.Unlock()
	if clear == nil {
		return
	}
	select {
	case <-clear:
	case <-over:
	}
}

// giving is a source that gives way.
type giving struct {
	heap.BlockSource
	s *Server
}

func (g *giving) Next() (trace.Block, error) {
	g.s.way.give(g.s.ctx.Done())
	return g.BlockSource.Next()
}

// polite is an input of Config whose readings give way.
func (s *Server) polite(
	input func(func(done, total int64)) (*Input, error),
) func(func(done, total int64)) (*Input, error) {
	return func(progress func(done, total int64)) (*Input, error) {
		in, err := input(progress)
		if err == nil {
			in.Source = &giving{in.Source, s}
		}
		return in, err
	}
}
