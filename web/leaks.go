package web

import (
	"context"
	"net/http"

	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
)

// misses answers with what grew and is not named a leak, with the reasons, as `heapcam leaks --json` has them. All
// objects are replayed for it.
func (s *Server) misses(r *http.Request) (any, error) {
	return s.data.keep(r.Context(), "misses", func(ctx context.Context) (any, error) {
		var rep *leak.Report
		err := s.data.replay(ctx, "Looking for near misses", func(p *heap.Replay) (err error) {
			rep, err = leak.Find(p, leak.Options{MinGrowth: leak.DefaultMinGrowth})
			return err
		})
		return rep, err
	})
}
