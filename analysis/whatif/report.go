package whatif

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Report is what `heapcam whatif` shows.
type Report struct {
	Schema    string  `json:"schema"`
	Mode      Mode    `json:"mode"`            // what predictions are made from
	Seeds     int     `json:"drawn_inputs"`    // inputs that were drawn
	Seconds   float64 `json:"seconds"`         // length of the recording
	Program   float64 `json:"program_seconds"` // in which the program ran: without collections
	Allocated uint64  `json:"allocated_bytes"` // by the program
	Objects   uint64  `json:"objects"`         // that a collection saw, or that are large
	Depth     string  `json:"depth"`           // of the recording
	// the recorded configuration: what was measured and what is predicted of it
	Check Check `json:"check"`
	// how long pauses take, learnt from those of the recording
	Pauses         PauseReport  `json:"pause_model"`
	Configurations []Prediction `json:"configurations"` // those asked for
	// the smallest heap that halves the time in collections, if the model fits and one does
	Advice *Advice `json:"advice,omitempty"`
	// the same heaps without generations
	OneGeneration []OneGeneration `json:"one_generation"`
	Goal          *GoalAnswer     `json:"goal,omitempty"` // the answer to --goal
	Warnings      []string        `json:"warnings"`       // what makes predictions less sure
}

// Check compares what was measured with what is predicted of the recorded configuration.
type Check struct {
	Recorded Prediction `json:"recorded"` // of the recorded configuration
	Rows     []CheckRow `json:"rows"`     // one a figure
	Fits     bool       `json:"fits"`     // no count and no time is off by more than 15 %
	Reasons  []string   `json:"reasons"`  // why the model may not fit
}

// CheckRow is one figure of a Check.
type CheckRow struct {
	What      string  `json:"what"`      // name of the figure
	Measured  float64 `json:"measured"`  // collections, seconds or bytes
	Predicted Span    `json:"predicted"` // in the same unit
	Off       float64 `json:"off"`       // predicted / measured - 1; 0 where the difference does not matter
}

// Names of the rows of a Check.
const (
	RowMinor    = "young collections"
	RowFull     = "full collections"
	RowSeconds  = "time in collections"
	RowLongest  = "longest pause"
	RowCopied   = "bytes copied in young space"
	RowPromoted = "bytes promoted"
)

// tolerance is how far a prediction of what was recorded may be off.
const tolerance = 0.15

// PauseReport describes a PauseModel. Times are in seconds.
type PauseReport struct {
	Fixed       float64 `json:"young_fixed_seconds"`      // of each young collection
	PerObject   float64 `json:"young_seconds_per_object"` // that a young collection copies
	PerByte     float64 `json:"young_seconds_per_byte"`   // that a young collection copies
	FullFixed   float64 `json:"full_fixed_seconds"`       // of each full collection
	FullPerByte float64 `json:"full_seconds_per_byte"`    // that a full collection keeps
	Young       int     `json:"young_pauses"`             // that the model was fitted on
	Full        int     `json:"full_pauses"`              // that the model was fitted on; of none, the model is a guess
	// 5th percentile of what young collections took beyond the model
	Low float64 `json:"young_residual_5"`
	// 95th percentile of what young collections took beyond the model
	High float64 `json:"young_residual_95"`
}

func (m *PauseModel) report() PauseReport {
	r := PauseReport{Fixed: m.Fixed, PerObject: m.PerObject, PerByte: m.PerByte, FullFixed: m.FullFixed,
		FullPerByte: m.FullPerByte, Young: m.Young, Full: m.Fulls}
	if n := len(m.Residuals); n > 0 {
		r.Low, r.High = m.Residuals[n/20], m.Residuals[n-1-n/20]
	}
	return r
}

// measured sums what the recording's collections did.
func (m *Model) measured() figures {
	var f figures
	last := uint64(0)
	for i := range m.tape.Epochs {
		e := &m.tape.Epochs[i]
		if m.Recorded.regional() && !collected(e.Kind) && e.Kind != trace.PauseFull {
			continue // a pause of concurrent marking
		}
		seconds := float64(e.Pause) / 1e9
		f.seconds += seconds
		f.longest = max(f.longest, seconds)
		if e.Kind != trace.PauseFull {
			f.copied += 8 * float64(e.SurvivorAfter)
			f.promoted += 8 * float64(e.OldAfter-min(e.OldAfter, e.OldBefore))
		}
		switch e.Kind {
		case trace.PauseYoung, trace.PauseMixed:
			f.minor++
		case trace.PauseFull:
			f.full++
			// Parallel's full collections may follow a young one in the same stop.
			if i > 0 && e.JVMGC == last+2 && !m.Recorded.regional() {
				f.minor++
			}
		}
		last = e.JVMGC
	}
	return f
}

// Compare makes the check of the recorded configuration.
func (m *Model) compare(p *Prediction) Check {
	c := Check{Recorded: *p, Fits: true, Reasons: append([]string{}, m.Doubts...)}
	f := m.measured()
	row := func(what string, measured float64, s Span, small float64, counts bool) {
		r := CheckRow{What: what, Measured: measured, Predicted: s}
		if d := s.Value - measured; math.Abs(d) > small {
			r.Off = d / max(measured, small, 1e-12)
		}
		if counts && math.Abs(r.Off) > tolerance {
			c.Fits = false
		}
		c.Rows = append(c.Rows, r)
	}
	row(RowMinor, f.minor, p.Minor, 1, true)
	row(RowFull, f.full, p.Full, 1, true)
	row(RowSeconds, f.seconds, p.GCSeconds, 1e-3, true)
	row(RowLongest, f.longest, p.Longest, 1e-3, false)
	row(RowCopied, f.copied, p.Copied, 1<<20, false)
	row(RowPromoted, f.promoted, p.Promoted, 1<<20, false)
	if !c.Fits && len(c.Reasons) == 0 {
		c.Reasons = append(c.Reasons, "no cause is in the recording; possible ones are allocation that depends on "+
			"time, "+
			"and collections that moved the program's work")
	}
	return c
}

// SizeError says that no configuration can hold what lives.
type SizeError struct{ Live, Old uint64 }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the program needs more memory than any of these sizes: an old space of %s cannot hold the "+
		"%s that live at the same time; ask for an old space of at least %s", ui.Bytes(e.Old), ui.Bytes(e.Live),
		ui.Bytes(e.Live*5/4))
}

// Most that a configuration's eden may be smaller than the recorded one: at depth full the ages of all objects are
// known, else only those of samples.
const (
	MostSmaller     = 4
	MostSmallerFull = 32
)

// FactorError says that a young generation is too small to be predicted.
type FactorError struct{ Young, Least uint64 }

func (e *FactorError) Error() string {
	return fmt.Sprintf("a young generation of %s is too small to predict from this recording, whose collections are "+
		"too far apart: the smallest is about %s; record with a smaller young generation, or with --depth full",
		ui.Bytes(e.Young), ui.Bytes(e.Least))
}

// Make predicts the recorded configuration and those asked for.
func (m *Model) Make(ctx context.Context, h How, configs []Config, done func(float64)) (*Report, error) {
	most := uint64(MostSmaller)
	if m.tape.Full {
		most = MostSmallerFull
	}
	for _, c := range configs {
		if c.Eden*most < m.Recorded.Eden {
			return nil, &FactorError{8 * c.Young(), 8 * m.Recorded.Young() / most}
		}
	}
	ps, err := m.Predict(ctx, h, append([]Config{m.Recorded}, configs...), done)
	if err != nil {
		return nil, err
	}
	r := &Report{Schema: "heapcam.whatif/1", Mode: h.Mode, Seeds: h.Seeds, Program: m.program(),
		Allocated: 8 * (m.tape.End() + m.tape.Tail),
		Objects:   uint64(m.tape.Len()), Depth: "survivors", Check: m.compare(&ps[0]), Pauses: m.Pauses.report(),
		Configurations: ps[1:], Warnings: []string{}}
	if m.tape.Full {
		r.Depth = "full"
	}
	r.Seconds = r.Program + m.measured().seconds
	MarkPareto(r.Configurations)
	if len(configs) > 0 {
		fits := false
		old := uint64(0)
		for i := range r.Configurations {
			fits = fits || !r.Configurations[i].TooSmall
			old = max(old, r.Configurations[i].Old)
		}
		if !fits {
			return nil, &SizeError{uint64(ps[0].Live.High), old}
		}
	}
	r.Advice = m.advice(r)
	r.OneGeneration = m.OneGeneration(m.heaps(r.Configurations))
	other := func(c Config) bool { return c.Eden != m.Recorded.Eden }
	if h.Mode == ModeProbabilities && slices.ContainsFunc(configs, other) {
		r.Warnings = append(r.Warnings, "the probabilities are those of the recorded young generation; with another "+
			"one they differ, which this mode does not know")
	}
	if slices.ContainsFunc(append(configs, m.Recorded), func(c Config) bool { return c.regional() }) {
		r.Warnings = append(r.Warnings, "predictions of G1 are an approximation: G1 chooses the size of eden, and "+
			"what it collects, by times; pauses of marking are not in the figures")
	}
	if !m.Known {
		r.Warnings = append(r.Warnings, "no full collection was recorded, so it is not known when objects in old "+
			"space "+
			"died; predictions take them for live, and may have too many full collections")
	}
	return r, nil
}
