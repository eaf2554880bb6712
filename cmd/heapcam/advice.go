package main

import (
	"context"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/lifetimes"
	"github.com/heapcam/heapcam/analysis/whatif"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

const (
	// mostAdvised is the largest recording, in bytes, whose report advises on heap sizes: all objects are replayed.
	mostAdvised = 16 << 20
	// leastPaused is the share of the time in collections from which it does.
	leastPaused = 0.02
)

// adviceOn gives a heap size that would halve the time in collections; nil if none is known. It predicts only from
// small recordings that the model fits.
func adviceOn(ctx context.Context, rec *ringstore.Recording, rep *analysis.Report) *whatif.Advice {
	size := int64(0)
	for _, f := range rec.Files {
		size += f.Size
	}
	fixed := rep.Collector == analysis.CollectorName(trace.CollectorSerial) ||
		rep.Collector == analysis.CollectorName(trace.CollectorParallel)
	// Of a heap that was full, whatever filled it comes first: with other sizes it gets full, too.
	if !fixed || rep.Full != nil || size > mostAdvised || len(rep.Damage) > 0 ||
		float64(rep.PauseNS) < leastPaused*float64(rep.WindowNS) {
		return nil
	}
	a, err := indexed(ownIndex(), adviceResult, rec.Path, func() (*whatif.Advice, error) {
		src := newSource(rec.Files...)
		defer src.Close()
		tape, err := lifetimes.ReadMost(heap.NewReplay(src), whatif.MostAdvised)
		if err != nil {
			return nil, err
		}
		m, err := whatif.New(tape)
		if err != nil {
			return nil, err
		}
		a, err := m.Advise(ctx)
		if a == nil {
			a = &whatif.Advice{}
		}
		return a, err
	})
	if err != nil || a.Flags == "" {
		return nil
	}
	return a
}
