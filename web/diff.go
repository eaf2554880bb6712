package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/heap"
)

// maxAnswers bounds the diffs and trends that are kept.
const maxAnswers = 8

// answer is a diff or trend, or one that is being made, by what was asked for.
type answer struct {
	key string
	o   *once[any]
}

// keep gives the answer to key, or has it made.
func (d *data) keep(r *http.Request, key string, make func() (any, error)) (any, error) {
	v, _ := d.s.version()
	key += "\x00" + v
	d.mu.Lock()
	i := slices.IndexFunc(d.answers, func(a answer) bool { return a.key == key })
	if i < 0 {
		if len(d.answers) >= maxAnswers {
			d.answers = slices.Delete(d.answers, 0, 1)
		}
		d.answers = append(d.answers, answer{key, begin(make)})
		i = len(d.answers) - 1
	}
	a := d.answers[i]
	d.answers = append(slices.Delete(d.answers, i, i+1), a)
	d.mu.Unlock()
	x, err := a.o.wait(r.Context())
	if err != nil {
		d.mu.Lock()
		select {
		case <-a.o.done: // the next one tries again
			d.answers = slices.DeleteFunc(d.answers, func(x answer) bool { return x.o == a.o })
		default:
		}
		d.mu.Unlock()
	}
	return x, err
}

// or gives the second text if the first is empty.
func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func (s *Server) diffOf(r *http.Request) (*analysis.DiffReport, error) {
	q := questionOf(r, "type")
	from, to := or(r.FormValue("from"), "first"), or(r.FormValue("to"), "last")
	by, filters, err := q.make(s)
	if err != nil {
		return nil, err
	}
	v, err := s.data.keep(r, "diff\x00"+from+"\x00"+to+"\x00"+q.String(), func() (any, error) {
		var rep *analysis.DiffReport
		err := s.data.open(fmt.Sprintf("comparing collections %s and %s", from, to), func(open func() *heap.Replayer) error {
			a, b, err := analysis.FindTwo(from, to, open)
			if err != nil {
				return err
			}
			if a > b {
				a, b = b, a
			}
			if rep, err = analysis.Diff(open(), a, b, by, filters); err != nil && !errors.Is(err, analysis.ErrNotThere) {
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

// change is a group of a diff as the page gets it: with some of its children.
type change struct {
	*analysis.Change
	Count    int       `json:"count"`
	Children []*change `json:"children,omitempty"`
}

func cutChange(c *analysis.Change, levels, skip int) *change {
	x := &change{Change: c, Count: len(c.Children)}
	if levels > 0 {
		for _, k := range c.Children[min(skip, len(c.Children)):min(skip+maxBranches, len(c.Children))] {
			x.Children = append(x.Children, cutChange(k, levels-1, 0))
		}
	}
	return x
}

// diff answers with a part of a diff: one level below a path.
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
				return nil, badRequest{fmt.Errorf("there is no group %s", k)}
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

// exportDiff gives the whole of a diff as a file.
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
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(d)
	default:
		return badRequest{fmt.Errorf("format %q: csv or json", f)}
	}
}
