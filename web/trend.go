package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
)

const (
	trendRows   = 100 // groups of a trend that are kept
	trendPoints = 160 // of a small course
	lifeRows    = 40  // curves of survival
)

// courseRow is a row of a trend; of a small one Objects is left out and Bytes holds the collections that courses.At
// names.
type courseRow struct {
	analysis.TrendRow
	Objects []uint64 `json:"objects,omitempty"`
	Bytes   []uint64 `json:"bytes"`
}

// courses is the answer to api/trend: as `heapcam trend --json`, the rows thinned or one of them whole.
type courses struct {
	*analysis.TrendReport
	At   []int       `json:"at"` // indexes of collections
	Rows []courseRow `json:"rows"`
}

func (s *Server) trendOf(ctx context.Context, q question) (*analysis.TrendReport, error) {
	first, filter, err := q.make(s)
	if err != nil {
		return nil, err
	}
	v, err := s.data.keep(ctx, "trend\x00"+q.String(), func(ctx context.Context) (any, error) {
		again := func() ([]classify.Classifier, []classify.Filter) {
			by, filters, err := q.make(s)
			if err != nil { // it was right before; a file that changed meanwhile does not matter
				return first, filter
			}
			return by, filters
		}
		if t := s.tape(ctx); t != nil {
			rep, err := t.trend(ctx, look(first, filter), again)
			if err != nil && ctx.Err() == nil {
				err = badRequest{err}
			}
			return rep, err
		}
		var rep *analysis.TrendReport
		err := s.data.replay(ctx, "following the groups", func(p *heap.Replay) (err error) {
			if rep, err = analysis.Trend(p, again, trendRows); err != nil {
				err = badRequest{err}
			}
			return err
		})
		return rep, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*analysis.TrendReport), nil
}

// trend answers with the groups that moved most, or with one of them.
func (s *Server) trend(r *http.Request) (any, error) {
	t, err := s.trendOf(r.Context(), questionOf(r, changeBy))
	if err != nil {
		return nil, err
	}
	out := courses{TrendReport: t, At: []int{}, Rows: []courseRow{}}
	n := len(t.Collections)
	if p := r.FormValue("row"); p != "" {
		path, err := pathOf(p)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(t.Rows, func(x analysis.TrendRow) bool { return slices.Equal(x.Path, path) })
		for k := range n {
			out.At = append(out.At, k)
		}
		if i >= 0 {
			x := t.Rows[i]
			out.Rows = append(out.Rows, courseRow{x, x.Objects, x.Bytes})
		}
		return out, nil
	}
	for k := range min(n, trendPoints) {
		out.At = append(out.At, k*max(n-1, 1)/max(min(n, trendPoints)-1, 1))
	}
	for _, x := range t.Rows {
		row := courseRow{TrendRow: x, Bytes: []uint64{}}
		for _, k := range out.At {
			row.Bytes = append(row.Bytes, x.Bytes[min(k, n-1)])
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// survival answers as `heapcam trend --survival --json`.
func (s *Server) survival(r *http.Request) (any, error) {
	return s.data.keep(r.Context(), "survival", func(ctx context.Context) (any, error) {
		var rep *history.SurvivalReport
		err := s.data.replay(ctx, "following what survives", func(p *heap.Replay) (err error) {
			rep, err = history.Survival(p, lifeRows)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("survival: %w", err)
		}
		return rep, nil
	})
}
