package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
)

const (
	trendRows   = 100 // groups of a trend
	trendPoints = 160 // collections in the small curve of a table row
	lifeRows    = 40  // survival curves
	largestRows = 10  // groups of the stacked curve
)

// curveRow is a row of a trend. In the table's rows Objects is left out, and Bytes holds only the collections in
// curves.At.
type curveRow struct {
	analysis.TrendRow
	Objects []uint64 `json:"objects,omitempty"`
	Bytes   []uint64 `json:"bytes"`
}

// curves is the answer of api/trend, like `heapcam trend --json`: all rows with few points, or one row with all.
type curves struct {
	*analysis.TrendReport
	At   []int      `json:"at"` // indexes of collections
	Rows []curveRow `json:"rows"`
}

// trended is a trend: the rows that moved most, and those that are largest over the window. whole has all rows; nil:
// they are too many to keep, or estimates.
type trended struct {
	*analysis.TrendReport
	largest []analysis.TrendRow
	whole   *analysis.TrendReport
}

// trendKept is how many points, of all rows together, a trend has at most whose rows are all kept.
const trendKept = 2_000_000

// shorten keeps of a trend with all rows those that moved most, and the largest ones.
func shorten(rep *analysis.TrendReport) *trended {
	size := func(x *analysis.TrendRow) (sum uint64) {
		for _, b := range x.Bytes {
			sum += b
		}
		return sum
	}
	order := make([]int, len(rep.Rows))
	sums := make([]uint64, len(rep.Rows))
	for i := range rep.Rows {
		order[i], sums[i] = i, size(&rep.Rows[i])
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	t := &trended{TrendReport: rep}
	if rep.Exact && len(rep.Rows)*len(rep.Collections) <= trendKept {
		all := *rep
		t.whole = &all
	}
	for _, i := range order[:min(len(order), largestRows)] {
		t.largest = append(t.largest, rep.Rows[i])
	}
	if n := len(rep.Rows) - trendRows; n > 0 {
		rep.Left += n
		rep.Rows = slices.Clone(rep.Rows[:trendRows]) // frees the others
	}
	return t
}

// period is a part of the window's time, in Unix milliseconds; the zero period is all of it.
type period struct{ from, to int64 }

func (p period) has(t time.Time) bool {
	return p == period{} || t.UnixMilli() >= p.from && t.UnixMilli() <= p.to
}

// periodOf reads the period FROM-TO of a request.
func periodOf(r *http.Request) (p period) {
	if n, _ := fmt.Sscanf(r.FormValue("win"), "%d-%d", &p.from, &p.to); n < 2 || p.to <= p.from {
		return period{}
	}
	return p
}

func (s *Server) trendOf(ctx context.Context, q question, in period) (*trended, error) {
	first, filter, err := q.make(s)
	if err != nil {
		return nil, err
	}
	v, err := s.data.keep(ctx, fmt.Sprint("trend\x00", in, q), func(ctx context.Context) (any, error) {
		if in != (period{}) && detailOf(first, filter) == ofTypes && s.timeline(ctx) != nil {
			// it has all collections; if it fails, that of the period may succeed
			if all, err := s.trendOf(ctx, q, period{}); err == nil && all.whole != nil {
				return shorten(all.whole.Within(in.has)), nil
			}
		}
		again := func() ([]classify.Classifier, []classify.Filter) {
			by, filters, err := q.make(s)
			if err != nil { // the first call succeeded; a classifier file that changed since does not matter
				return first, filter
			}
			return by, filters
		}
		if t := s.timeline(ctx); t != nil {
			rep, err := t.trend(ctx, detailOf(first, filter), in, again)
			if err != nil && ctx.Err() == nil {
				err = badRequest{err}
			}
			if err != nil {
				return nil, err
			}
			return shorten(rep), nil
		}
		var rep *analysis.TrendReport
		err := s.data.replay(ctx, "Computing the trends", func(p *heap.Replay) (err error) {
			if rep, err = analysis.TrendWithin(p, in.has, again, 0); err != nil {
				err = badRequest{err}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		return shorten(rep), nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*trended), nil
}

// trend answers with the groups that changed most, with the largest ones, or with one of them.
func (s *Server) trend(r *http.Request) (any, error) {
	t, err := s.trendOf(r.Context(), questionOf(r, changeBy), periodOf(r))
	if err != nil {
		return nil, err
	}
	out := curves{TrendReport: t.TrendReport, At: []int{}, Rows: []curveRow{}}
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
			out.Rows = append(out.Rows, curveRow{x, x.Objects, x.Bytes})
		}
		return out, nil
	}
	for k := range min(n, trendPoints) {
		out.At = append(out.At, k*max(n-1, 1)/max(min(n, trendPoints)-1, 1))
	}
	rows := t.Rows
	if r.FormValue("largest") != "" {
		rows = t.largest
	}
	for _, x := range rows {
		row := curveRow{TrendRow: x, Bytes: []uint64{}}
		for _, k := range out.At {
			row.Bytes = append(row.Bytes, x.Bytes[min(k, n-1)])
		}
		out.Rows = append(out.Rows, row)
	}
	return out, nil
}

// survival answers like `heapcam trend --survival --json`.
func (s *Server) survival(r *http.Request) (any, error) {
	return s.data.keep(r.Context(), "survival", func(ctx context.Context) (any, error) {
		var rep *history.SurvivalReport
		err := s.data.replay(ctx, "Computing the survival curves", func(p *heap.Replay) (err error) {
			rep, err = history.Survival(p, lifeRows)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("cannot compute the survival curves: %w", err)
		}
		return rep, nil
	})
}
