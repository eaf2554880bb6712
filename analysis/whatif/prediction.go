package whatif

import "slices"

// Prediction is what is predicted of one configuration. Sizes are in bytes, times in seconds.
type Prediction struct {
	Collector string `json:"collector"` // that is simulated
	Heap      uint64 `json:"heap"`      // bytes of young generation and old space
	Young     uint64 `json:"young"`     // bytes: eden and both survivor spaces; of G1, the largest eden
	Eden      uint64 `json:"eden"`      // bytes
	Survivor  uint64 `json:"survivor"`  // bytes of one of the two
	Old       uint64 `json:"old"`       // bytes
	// collections that an object survives in young space, at most
	Tenuring int `json:"tenuring_threshold"`

	Minor     Span `json:"young_collections"`      // of the length of the recording
	Full      Span `json:"full_collections"`       // of the length of the recording
	PerMinute Span `json:"collections_per_minute"` // of both kinds
	GCSeconds Span `json:"gc_seconds"`             // all pauses together
	GCShare   Span `json:"gc_share"`               // of the wall time
	Longest   Span `json:"longest_pause_seconds"`  // of all pauses
	Copied    Span `json:"copied_bytes"`           // within young space
	Promoted  Span `json:"promoted_bytes"`         // by young collections
	Live      Span `json:"live_bytes"`             // the most that a full collection kept
	// share of old space, or of the heap of G1, that the most live bytes leave free
	Headroom Span `json:"headroom"`

	TooSmall   bool `json:"too_small"`        // the program runs out of memory
	MayBeSmall bool `json:"may_be_too_small"` // it does so with some of the deaths that are possible
	// no other configuration of the document has both a heap as small and as little time in collections
	Pareto bool `json:"pareto"`
	// recorded eden / this eden: above 1, the recording says less of lifetimes than this needs
	Factor float64 `json:"extrapolation"`

	config Config
	steps  []Step
}

// slack is what counts may differ by from one run of a program to the next.
const slack = 0.02

// spanOf gives the middle of the first values, which were drawn, and the range of all, wider by some counts and by
// slack.
func spanOf(runs []figures, drawn int, counts float64, of func(*figures) float64) Span {
	var v []float64
	for i := range runs {
		v = append(v, of(&runs[i]))
	}
	drawnOnes := slices.Clone(v[:min(len(v), drawn)])
	slices.Sort(drawnOnes)
	s := Span{Value: drawnOnes[len(drawnOnes)/2], Low: slices.Min(v), High: slices.Max(v)}
	s.Low, s.High = max(0, s.Low*(1-slack)-counts), s.High*(1+slack)+counts
	return s
}

func (m *Model) prediction(c Config, runs []figures, drawn int) Prediction {
	p := Prediction{Collector: collectors[c.Collector], Young: 8 * c.Young(), Eden: 8 * c.Eden,
		Survivor: 8 * c.Survivor, Old: 8 * c.Old, Heap: 8 * (c.Young() + c.Old), Tenuring: c.Threshold, config: c}
	p.Factor = float64(m.Recorded.Eden) / float64(max(1, c.Eden))
	failed := 0
	for i := range runs {
		if runs[i].exhausted {
			failed++
		}
	}
	p.TooSmall, p.MayBeSmall = runs[0].exhausted, failed > 0 && !runs[0].exhausted
	program := m.program()
	p.Minor = spanOf(runs, drawn, 1, func(f *figures) float64 { return f.minor })
	p.Full = spanOf(runs, drawn, 1, func(f *figures) float64 { return f.full })
	p.PerMinute = spanOf(runs, drawn, 0, func(f *figures) float64 {
		return 60 * (f.minor + f.full) / (program + f.seconds)
	})
	p.GCSeconds = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.seconds })
	p.GCShare = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.share })
	p.Longest = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.longest })
	p.Copied = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.copied })
	p.Promoted = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.promoted })
	p.Live = spanOf(runs, drawn, 0, func(f *figures) float64 { return f.live })
	old := float64(8 * max(1, c.Old))
	if c.regional() {
		old = float64(8 * max(1, c.heap()))
	}
	p.Headroom = Span{max(0, 1-p.Live.Value/old), max(0, 1-p.Live.High/old), max(0, 1-p.Live.Low/old)}
	return p
}

// MarkPareto marks the predictions of which no other one has both a heap as small and as little time in collections.
func MarkPareto(ps []Prediction) {
	for i := range ps {
		p := &ps[i]
		p.Pareto = !p.TooSmall
		for j := range ps {
			q := &ps[j]
			if q.TooSmall || i == j {
				continue
			}
			if q.Heap <= p.Heap && q.GCSeconds.Value <= p.GCSeconds.Value &&
				(q.Heap < p.Heap || q.GCSeconds.Value < p.GCSeconds.Value || j < i) {
				p.Pareto = false
			}
		}
	}
}
