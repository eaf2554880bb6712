package web

import (
	"context"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/cost"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// metered adds what each block says of heapcam's cost to a sum.
type metered struct {
	heap.BlockSource
	took *cost.Cost
	refs *bool // a block belongs to a reference listing; or nil
}

func (m *metered) Next() (trace.Block, error) {
	b, err := m.BlockSource.Next()
	if err == nil {
		_ = m.took.Add(b) // the replay reports what is damaged
		if m.refs != nil && b.Kind == trace.KindRefs {
			*m.refs = true
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
	replay := metering(d.s.cfg.Open, took)
	if d.s.cfg.OpenCensus != nil {
		replay = d.s.cfg.Open
		if err := opened(ctx, d, what, metering(d.s.cfg.OpenCensus, took), heap.NewCensus,
			func(open func() *heap.Census) error {
				r := open()
				made, err := analysis.MakeReport(r, o)
				if err == nil && !r.Unsure {
					rep = made
				}
				return err
			}); err != nil || rep != nil && !rep.Open {
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
