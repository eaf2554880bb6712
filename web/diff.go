package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// maxAnswers is how many diffs and trends the cache holds.
const maxAnswers = 8

// keep returns the answer of key from the cache, or that of make.
func (d *data) keep(ctx context.Context, key string, make func(context.Context) (any, error)) (any, error) {
	v, _ := d.s.version()
	return d.answers.get(ctx, key+"\x00"+v, make)
}

// or returns the second text if the first is empty.
func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func (s *Server) diffOf(r *http.Request) (*analysis.DiffReport, error) {
	return s.diffBy(r.Context(), questionOf(r, changeBy), or(r.FormValue("from"), "first"),
		or(r.FormValue("to"), "last"))
}

func (s *Server) diffBy(ctx context.Context, q question, from, to string) (*analysis.DiffReport, error) {
	by, filters, err := q.make(s)
	if err != nil {
		return nil, err
	}
	v, err := s.data.keep(ctx, "diff\x00"+from+"\x00"+to+"\x00"+q.String(), func(ctx context.Context) (any, error) {
		if a, _ := classify.Needs(by, filters); a&classify.AttrSpace == 0 && s.timeline(ctx) != nil {
			return s.diffStates(ctx, from, to, by, filters)
		}
		var rep *analysis.DiffReport
		what := fmt.Sprintf("Comparing collections %s and %s", from, to)
		err := s.data.open(ctx, what, func(open func() *heap.Replay) error {
			a, b, err := collection.FindTwo(from, to, open, open)
			if err != nil {
				return err
			}
			if a > b {
				a, b = b, a
			}
			if rep, err = analysis.Diff(open(), a, b, by, filters); err != nil &&
				!errors.Is(err, collection.ErrNotThere) {
				err = badRequest{inField{"by", err}}
			}
			return err
		})
		return rep, err
	})
	if err != nil {
		return nil, err
	}
	return v.(*analysis.DiffReport), nil
}

// diffStates compares two states. Both are taken from the timeline, or replayed at the same time.
func (s *Server) diffStates(
	ctx context.Context,
	from, to string,
	by []classify.Classifier,
	filters []classify.Filter,
) (*analysis.DiffReport, error) {
	var a, b *state
	var err, err2 error
	var wg sync.WaitGroup
	wg.Go(func() { b, err2 = s.at(ctx, to, ofObjects) })
	a, err = s.at(ctx, from, ofObjects)
	wg.Wait()
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	if a.c.GC > b.c.GC {
		a, b = b, a
	}
	rep, err := analysis.DiffStates(a.r, a.c, b.r, b.c, b.callers, by, filters)
	if err != nil {
		return nil, badRequest{inField{"by", err}}
	}
	return rep, nil
}

// change is a group of a diff in an answer, with some of its children.
type change struct {
	*analysis.Change
	Count    int       `json:"count"`
	Children []*change `json:"children,omitempty"`
}

// cutChange converts a group with so many levels of children, from child number skip on.
func cutChange(c *analysis.Change, levels, skip int) *change {
	x := &change{Change: c, Count: len(c.Children)}
	if levels > 0 {
		for _, k := range c.Children[min(skip, len(c.Children)):min(skip+maxBranches, len(c.Children))] {
			x.Children = append(x.Children, cutChange(k, levels-1, 0))
		}
	}
	return x
}

// diff answers with one level of a diff, below a path.
func (s *Server) diff(r *http.Request) (any, error) {
	d, err := s.diffOf(r)
	if err != nil {
		return nil, err
	}
	c := d.Tree
	if p := r.FormValue("path"); p != "" {
		path, err := pathOf(p)
		if err != nil {
			return nil, err
		}
		for _, k := range path {
			i := slices.IndexFunc(c.Children, func(x *analysis.Change) bool { return x.Key == k })
			if i < 0 {
				return nil, badRequest{fmt.Errorf("there is no group %s in this diff", k)}
			}
			c = c.Children[i]
		}
	}
	short := *d
	short.Tree = nil
	return struct {
		*analysis.DiffReport
		Tree *change `json:"tree"`
	}{&short, cutChange(c, 1, number(r, "skip"))}, nil
}

// exportDiff answers with all groups of a diff as a file.
func (s *Server) exportDiff(w http.ResponseWriter, r *http.Request) error {
	d, err := s.diffOf(r)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-gc%d-gc%d", fileName(s.cfg.Title), d.From.GC, d.To.GC)
	switch f := r.FormValue("format"); f {
	case "csv":
		attach(w, name+".csv", "text/csv; charset=utf-8")
		return d.WriteCSV(w)
	case "json":
		attach(w, name+".json", "application/json")
		return ui.JSONLines(w).Encode(d)
	default:
		return badRequest{fmt.Errorf("unknown format %q: use csv or json", f)}
	}
}
