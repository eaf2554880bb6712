package web

import (
	"context"
	"net/http"
	"sync"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// early answers with an overview of what the collections took, which the page shows until the report has been made;
// null: there is none.
func (s *Server) early(r *http.Request) (any, error) { return s.outline(r.Context()) }

func (s *Server) outline(ctx context.Context) (any, error) {
	if s.cfg.OpenPauses == nil {
		return nil, nil
	}
	return s.data.keep(ctx, "early", func(ctx context.Context) (any, error) {
		in, err := s.cfg.OpenPauses()
		if err != nil {
			return nil, err
		}
		defer in.Close()
		rep, err := analysis.Outline(&stoppable{ctx, in.Source})
		if ctx.Err() != nil { // a reading that was cancelled looks complete
			return nil, ctx.Err()
		}
		if err != nil || rep == nil || len(rep.Collections) == 0 {
			return nil, err
		}
		v := Overview{Title: s.cfg.Title, Early: true, Headlines: soFar(rep), Report: rep,
			Incidents: []ringstore.Incident{}}
		if s.cfg.Incidents != nil {
			v.Incidents = append(v.Incidents, s.cfg.Incidents()...)
		}
		return v, nil
	})
}

// Ahead begins to read the recording before a page asks, while the browser starts. It calls thrift when the overview is
// ready, or before if heap states are read: they need much memory.
func (s *Server) Ahead(thrift func()) {
	thrift = sync.OnceFunc(thrift)
	s.thrift.Store(&thrift)
	go func() {
		_, _ = s.overviewNow(s.ctx) // a page that asks gets the error
		thrift()
	}()
}

// metered adds what each block says of heapcam's cost to a sum.
type metered struct {
	heap.BlockSource
	took *cost.Cost
	refs *int // blocks of reference listings; or nil
}

func (m *metered) Next() (trace.Block, error) {
	b, err := m.BlockSource.Next()
	if err == nil {
		_ = m.took.Add(b) // the replay reports what is damaged
		if m.refs != nil && b.Kind == trace.KindRefs {
			*m.refs++
		}
	}
	return b, err
}

// metering is an input of Config whose first reading adds to took.
func metering(input func(func(done, total int64)) (*Input, error), took *cost.Cost,
) func(func(done, total int64)) (*Input, error) {
	first := true
	return func(progress func(done, total int64)) (*Input, error) {
		in, err := input(progress)
		if err == nil && first {
			first, in.Source = false, &metered{BlockSource: in.Source, took: took}
		}
		return in, err
	}
}

// report reads the whole recording, as `heapcam report` does: first with a counting replay, then, if leaks need it,
// with a replay of all objects.
func (d *data) report(ctx context.Context) (rep *analysis.Report, err error) {
	const what = "Reading the recording"
	took := cost.New()
	defer func() {
		if rep != nil && err == nil {
			took.Close()
			rep.Account(took)
		}
	}()
	o, done := d.s.leakOptions()
	defer done()
	defer d.s.hub.send("likely", []Headline{}, true)
	replay := d.s.polite(metering(d.s.cfg.Open, took))
	if d.s.cfg.OpenCensus != nil {
		replay = d.s.polite(d.s.cfg.Open)
		if rep, err = d.counted(ctx, what, d.s.polite(metering(d.s.cfg.OpenCensus, took)), o); err != nil ||
			rep != nil && !rep.Open {
			return rep, err
		}
	}
	err = opened(ctx, d, what, replay, heap.NewReplay, func(open func() *heap.Replay) (err error) {
		r := open()
		if rep == nil {
			rep, err = analysis.MakeReport(r, o)
			return err
		}
		l, err := leak.Find(r, o)
		if err == nil {
			rep.Settle(l)
		}
		return err
	})
	return rep, err
}

// counted makes the report with counting replays; nil: the counts contradict each other. Open may be set. The first
// replay knows nothing of reference listings, because they take long to read. If there are none that is enough. Else
// its verdicts are what the page shows until the second one has read them.
func (d *data) counted(
	ctx context.Context,
	what string,
	input func(func(done, total int64)) (*Input, error),
	o leak.Options,
) (rep *analysis.Report, err error) {
	err = opened(ctx, d, what, input, heap.NewCensus, func(open func() *heap.Census) (err error) {
		for _, o := range []leak.Options{{MinGrowth: o.MinGrowth}, o} {
			r := open()
			if rep, err = analysis.MakeReport(r, o); err != nil {
				return err
			}
			d.s.hub.send("likely", likely(rep), true) // even if a replay of all objects finds that it counted wrong
			if r.Unsure {
				rep = nil
			}
			if r.Unsure || !r.Referenced {
				return nil
			}
		}
		return nil
	})
	return rep, err
}
