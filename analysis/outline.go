package analysis

import (
	"io"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Outline reads from src only what the collections took: their pauses, and how full the spaces of the heap were. So it
// needs neither listings nor definitions, and is done long before a report. It has no heap states, sites and verdicts.
// It is nil for a collector whose objects have no address.
func Outline(src heap.BlockSource) (*Report, error) {
	r := heap.NewCensus(pauses{src})
	rep, from, to := newReport(), uint64(0), uint64(0) // ns
	for {
		c, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(rep.Collections) == 0 {
			from = min(c.PhaseStart, c.Start)
			rep.From = collection.Wall(r.Symbols, from)
		}
		to = max(c.End(), from)
		rep.Collections = append(rep.Collections, rep.collection(r.Symbols, c))
	}
	if trace.Concurrent(r.JVM.Collector) {
		return nil, nil
	}
	rep.ending(&r.Cursor)
	rep.WindowNS = to - from
	rep.Settle(&leak.Report{Verdicts: []leak.Verdict{}, Misses: []leak.Miss{}})
	return rep, nil
}

// newReport is a report of nothing.
func newReport() *Report {
	return &Report{Schema: ReportSchema, Collections: []CollectionRow{}, Grown: []GrownClass{},
		GrownSites: []sites.GrownRow{}, Sites: []sites.Row{}, Damage: []string{}}
}

// pauses leaves out the blocks that say what the heap holds.
type pauses struct{ src heap.BlockSource }

func (p pauses) Next() (trace.Block, error) {
	for {
		b, err := p.src.Next()
		if err != nil {
			return b, err
		}
		switch b.Kind {
		case trace.KindMeta, trace.KindEpoch, trace.KindGap, trace.KindEnd:
			return b, nil
		}
	}
}
