package whatif

import (
	"context"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Request is what to predict. Sizes are in bytes.
type Request struct {
	Young, Old, Heap []uint64 // none of Old and Heap: a grid
	Ratio            uint64   // eden : survivor space; 0: as recorded
	Tenuring         int      // negative: as recorded
	Collector        uint64   // 0: as recorded
	Goal             Goal
	How
}

// Answer predicts what is asked for. Its errors are *FactorError, *SizeError and that of ctx.
func (m *Model) Answer(ctx context.Context, q Request, done func(float64)) (*Report, error) {
	if q.Collector == 0 {
		q.Collector = m.Recorded.Collector
	}
	configs, err := m.requested(&q)
	if err != nil {
		return nil, err
	}
	r, err := m.Make(ctx, q.How.fill(), configs, done)
	if (err == nil && q.Goal != Goal{}) {
		r.Goal = q.Goal.Answer(r.Configurations)
	}
	return r, err
}

// requested gives the configurations that a request is for.
func (m *Model) requested(q *Request) ([]Config, error) {
	if q.Collector == trace.CollectorG1 {
		return m.requestG1(q)
	}
	goal := q.Goal != Goal{}
	young := q.Young
	if len(young) == 0 {
		steps := []float64{0.5, 1, 2, 4}
		if goal {
			steps = []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8}
		}
		for _, f := range steps {
			young = append(young, uint64(8*f*float64(m.Recorded.Young())))
		}
	}
	old := q.Old
	if len(old) == 0 && len(q.Heap) == 0 {
		steps := []float64{1.25, 2, 4}
		if goal {
			steps = []float64{1.1, 1.25, 1.5, 1.75, 2, 2.5, 3, 4, 6, 8}
		}
		live := m.live()
		for _, f := range steps {
			old = append(old, uint64(f*live))
		}
	}
	var configs []Config
	add := func(young, old uint64) {
		c := m.Sized(q.Collector, young, old, q.Ratio, q.Tenuring)
		if c.Eden > 0 && c.Old > 0 && !slices.Contains(configs, c) {
			configs = append(configs, c)
		}
	}
	for _, y := range young {
		for _, o := range old {
			add(y, o)
		}
		for _, h := range q.Heap {
			if h > y {
				add(y, h-y)
			}
		}
	}
	if len(configs) == 0 {
		return nil, ErrNoConfig
	}
	return configs, nil
}

// live gives the bytes that live at most, as far as the recorded configuration shows it, at least 1 MiB.
func (m *Model) live() float64 {
	in := Observed(m.tape, m.curve, Latest, m.Recorded.Eden, 1)
	return max(1<<20, 8*float64(Simulate(in, m.Recorded, 1).LiveMost))
}
