package web

import (
	"context"
	"errors"
	"net/http"
	"runtime"

	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/heap"
)

// whatifReply is the answer to api/whatif.
type whatifReply struct {
	Why    string         `json:"why,omitempty"` // why nothing can be predicted from the recording
	Report *whatif.Report `json:"report,omitempty"`
}

// mostLifetimes is how many objects whatif reads: they take about 1 GiB.
const mostLifetimes = 5_000_000

// whatif answers with what `heapcam whatif --json` prints: predicted collections of other heaps.
func (s *Server) whatif(r *http.Request) (any, error) {
	return s.data.keep(r.Context(), "whatif", func(ctx context.Context) (any, error) {
		var m *whatif.Model
		err := s.data.replayLong(ctx, "Reading how long objects live", func(r *heap.Replay) error {
			tape, err := lifetimes.ReadMost(r, mostLifetimes)
			if err != nil {
				return err
			}
			m, err = whatif.New(tape)
			return err
		})
		if err != nil {
			return unpredictable(err)
		}
		m.Workers = max(1, runtime.GOMAXPROCS(0)-1) // the rest is for other questions
		report := s.hub.progress("Simulating other heaps", "percent")
		defer report(1, 1)
		rep, err := m.Answer(ctx, whatif.Request{Tenuring: -1},
			func(share float64) { report(int64(100*share), 100) })
		if err != nil {
			return unpredictable(err)
		}
		return &whatifReply{Report: rep}, nil
	})
}

// unpredictable is the answer if err says what the recording lacks. Other errors it gives back.
func unpredictable(err error) (any, error) {
	var size *whatif.SizeError
	var factor *whatif.FactorError
	for _, lack := range []error{whatif.ErrCollector, whatif.ErrNoConfig, whatif.ErrNoYoung, whatif.ErrImplausible,
		lifetimes.ErrNoObjects, lifetimes.ErrNoCollections, lifetimes.ErrMemory,
		lifetimes.ErrMany} {
		if errors.Is(err, lack) {
			return &whatifReply{Why: err.Error()}, nil
		}
	}
	if errors.As(err, &size) || errors.As(err, &factor) {
		return &whatifReply{Why: err.Error()}, nil
	}
	return nil, err
}
