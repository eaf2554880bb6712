package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
)

// TrendReport is the whole of `heapcam trend`: one grouping over all collections of the window.
type TrendReport struct {
	Schema      string       `json:"schema"`
	By          []string     `json:"by"`
	Where       []string     `json:"where,omitempty"`
	Collections []TrendPoint `json:"collections"` // after which the state is known
	Unknown     int          `json:"unknown"`     // the others of the window
	Exact       bool         `json:"exact"`
	Rows        []TrendRow   `json:"rows"` // what moved most first
	Left        int          `json:"left_out,omitempty"`
}

// TrendPoint is a collection of a trend.
type TrendPoint struct {
	Moment
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
}

// TrendRow is the course of a group, a figure for each collection.
type TrendRow struct {
	Path      []string `json:"path"`
	Estimated bool     `json:"estimated,omitempty"`
	First     uint64   `json:"first_bytes"`
	Last      uint64   `json:"last_bytes"`
	Peak      uint64   `json:"peak_bytes"`
	PeakGC    uint64   `json:"peak_gc"`
	Objects   []uint64 `json:"objects"`
	Bytes     []uint64 `json:"bytes"`
}

// maxTrendRows bounds the groups that a trend follows.
const maxTrendRows = 100_000

// Trend groups the state after each collection of r. again gives classifiers and filters anew for each state; most bounds the rows (0: no
// bound). Its errors are those of Group and of the replay, and ErrTrend.
func Trend(r *heap.Replayer, again func() ([]classify.Classifier, []classify.Filter), most int) (*TrendReport, error) {
	return TrendStates(func(f func(*heap.Replayer, *heap.Collection) bool) error {
		return Each(r, func(c *heap.Collection) bool { return f(r, c) })
	}, again, most)
}

// TrendStates is Trend of the states that each hands to its function, in order, until that is false.
func TrendStates(each func(func(*heap.Replayer, *heap.Collection) bool) error, again func() ([]classify.Classifier, []classify.Filter), most int) (*TrendReport, error) {
	rep := &TrendReport{Schema: "heapcam.trend/1", Collections: []TrendPoint{}, Exact: true, Rows: []TrendRow{}}
	rows := map[string]*TrendRow{}
	var failed error
	if err := each(func(r *heap.Replayer, c *heap.Collection) bool {
		if !c.Known {
			rep.Unknown++
			return true
		}
		by, filters := again()
		w, spaces := World(r, c)
		g, err := Group(r, c, w, spaces, by, filters)
		if err != nil {
			failed = fmt.Errorf("collection %d: %w", c.GC, err)
			return false
		}
		rep.By, rep.Where, rep.Exact = g.By, g.Where, rep.Exact && g.Exact
		n := len(rep.Collections)
		rep.Collections = append(rep.Collections, TrendPoint{momentOf(r, c), g.Objects, g.Bytes})
		g.Tree.Walk(func(path []string, x *classify.Node) bool {
			if len(path) == 0 {
				return true
			}
			id := strings.Join(path, "\x00") + fmt.Sprint("\x00", x.Level)
			row := rows[id]
			if row == nil {
				if len(rows) == maxTrendRows {
					failed = ErrTrend
					return false
				}
				row = &TrendRow{Path: slices.Clone(path)}
				rows[id] = row
			}
			for len(row.Bytes) < n {
				row.Bytes, row.Objects = append(row.Bytes, 0), append(row.Objects, 0)
			}
			row.Bytes, row.Objects = append(row.Bytes, x.Bytes), append(row.Objects, x.Objects)
			row.Estimated = row.Estimated || x.Estimated
			if x.Bytes > row.Peak {
				row.Peak, row.PeakGC = x.Bytes, c.GC
			}
			return true
		})
		return failed == nil
	}); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	n := len(rep.Collections)
	for _, row := range rows {
		for len(row.Bytes) < n {
			row.Bytes, row.Objects = append(row.Bytes, 0), append(row.Objects, 0)
		}
		row.First, row.Last = row.Bytes[0], row.Bytes[n-1]
		rep.Rows = append(rep.Rows, *row)
	}
	slices.SortFunc(rep.Rows, func(x, y TrendRow) int {
		return cmp.Or(cmp.Compare(y.moved(), x.moved()), cmp.Compare(y.Peak, x.Peak), slices.Compare(x.Path, y.Path))
	})
	if most > 0 && len(rep.Rows) > most {
		rep.Left = len(rep.Rows) - most
		rep.Rows = rep.Rows[:most]
	}
	return rep, nil
}

// ErrTrend says that a trend has too many groups.
var ErrTrend = fmt.Errorf("the trend has more than %d groups: take fewer or coarser classifiers, or a filter", maxTrendRows)

// moved is how far the row went from first to last, in bytes.
func (r *TrendRow) moved() uint64 { return max(r.First, r.Last) - min(r.First, r.Last) }

// Spark draws the course of the row's bytes from 0 on.
func (r *TrendRow) Spark(width int) string {
	v := make([]float64, len(r.Bytes))
	for i, b := range r.Bytes {
		v[i] = float64(b)
	}
	return Spark(v, width)
}
