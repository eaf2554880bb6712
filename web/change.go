package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/heapcam/heapcam/analysis/compare"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// codeBy is the default list of classifiers of a flame graph of changes.
const codeBy = "site, type"

// changeReply is the answer to api/change.
type changeReply struct {
	From uint64     `json:"from"` // collection, of the recording before if two are compared
	To   uint64     `json:"to"`
	Two  bool       `json:"two"` // the collections are of two recordings
	Tree *flameNode `json:"tree"`
}

// change answers with two heap states as one flame graph: of one recording, or of two with `two`. Frames of two
// recordings are matched by their methods, because lines may have moved.
func (s *Server) change(r *http.Request) (any, error) {
	q := questionOf(r, codeBy)
	rep := changeReply{Two: r.FormValue("two") != ""}
	first := s
	if rep.Two {
		if first = s.before; first == nil {
			return nil, errNoBefore
		}
	}
	var was, now *flows
	var err, err2 error
	var both sync.WaitGroup
	both.Go(func() { now, err2 = s.stacks(r.Context(), or(r.FormValue("to"), "last"), q) })
	from := "first"
	if rep.Two {
		from = "last"
	}
	was, err = first.stacks(r.Context(), or(r.FormValue("from"), from), q)
	both.Wait()
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	rep.From, rep.To = was.gc, now.gc
	var name func(string) string
	if rep.Two {
		name = sites.Unlined
	}
	all := joinFlows(was, now, name)
	if r.FormValue("fold") != "" {
		all = all.folded()
	}
	rep.Tree, err = all.flame(r.FormValue("order") != "leaf", r.FormValue("path"))
	return rep, err
}

var errNoBefore = badRequest{errors.New("this viewer shows one recording; to compare two, start `heapcam view BEFORE " +
	"AFTER`")}

// compare answers like `heapcam diff --json BEFORE AFTER`.
func (s *Server) compare(r *http.Request) (any, error) {
	if s.before == nil {
		return nil, errNoBefore
	}
	return s.data.keep(r.Context(), "compare", func(ctx context.Context) (any, error) {
		var growth [2]*compare.Growth
		var found [2]*leak.Report
		for i, of := range []*Server{s.before, s} {
			err := of.data.open(ctx, "Reading "+of.cfg.Title, func(open func() *heap.Replay) (err error) {
				if growth[i], err = compare.GrowthOf(open()); err != nil {
					return err
				}
				o, done := of.leakOptions()
				defer done()
				found[i], err = leak.Find(open(), o)
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		rep := compare.Recordings(growth[0], growth[1])
		rep.Judge(found[0], found[1])
		return rep, nil
	})
}

// leakOptions returns what the leak detector gets from the recording, and a function that frees it.
func (s *Server) leakOptions() (leak.Options, func()) {
	if s.cfg.Leaks != nil {
		return s.cfg.Leaks()
	}
	return leak.Options{MinGrowth: leak.DefaultMinGrowth}, func() {}
}
