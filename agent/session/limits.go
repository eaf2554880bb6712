package session

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// Limits are the settings that bound what is recorded, and how, and that may change while the agent runs. 0: no bound,
// unless the field says otherwise.
type Limits struct {
	// BudgetCPU is what the probe may take of wall time, 0 to 1. 0: DefaultBudget, unless the JVM is recorded at depth
	// full or sampled at another interval than the default. Negative: no bound.
	BudgetCPU         float64
	BudgetPause       time.Duration // what an ordinary epoch may add to a pause
	SamplingShare     float64       // of wall time; 0: DefaultSamplingShare at DefaultSampling, else any; negative: any
	LiveSamples       uint64        // samples of live objects that are wanted
	MaxWriteRate      int64         // bytes a second, one recording
	MaxTotalWriteRate int64         // bytes a second, all recordings
	MaxCPU            float64       // CPUs, the agent itself
	MaxMemory         int64         // bytes, the agent itself
	MaxReferencePause time.Duration // of a reference listing that nobody asked for; 0: none is taken
	// ReferencesInterval is the time between two of them. 0: for incidents and heaps that are nearly full alone.
	// Negative: after firstListing, then whenever the recording is half as old again.
	ReferencesInterval time.Duration
}

// Budget is the limits of a recording, as status shows them. 0: no limit.
type Budget struct {
	CPU           float64 `json:"overhead_cpu"` // of wall time
	PauseNS       int64   `json:"overhead_pause_ns"`
	SamplingShare float64 `json:"sampling_max_overhead"` // of wall time
	LiveSamples   uint64  `json:"sampling_target_live_samples"`
	WriteRate     int64   `json:"max_write_rate"` // bytes a second
}

// budget returns what the probe may take of wall time: what was asked for, else the default of JVMs that are recorded
// at the default depth and sampled at the default interval, also while that is not known; 0: any.
func (l *Limits) budget(in *stream) float64 {
	share := l.BudgetCPU
	if share == 0 && (!in.known || in.jvm.Depth != trace.DepthFull && in.jvm.Interval == DefaultSampling) {
		share = DefaultBudget
	}
	return max(share, 0)
}

// governed returns the budget of a governor, whose share is above 0.
func (l *Limits) governed(in *stream) (share float64, pause time.Duration) {
	if share = l.budget(in); share == 0 {
		share = 1
	}
	return share, l.BudgetPause
}

// samplingShare returns what sampling may take: what was asked for, else the default of JVMs that are sampled at the
// default interval, also while that is not known; 0: any.
func (l *Limits) samplingShare(in *stream) float64 {
	share := l.SamplingShare
	if share == 0 && (!in.known || in.jvm.Interval == DefaultSampling) {
		share = DefaultSamplingShare
	}
	return max(share, 0)
}

// differ says what is different from before, by the names of the configuration; "": nothing.
func (l *Limits) differ(was *Limits) string {
	var out []string
	add := func(differs bool, key, format string, v any) {
		if differs {
			out = append(out, key+" "+fmt.Sprintf(format, v))
		}
	}
	percent := func(f float64) float64 { return math.Round(1e6*max(f, 0)) / 1e4 }
	add(l.BudgetCPU != was.BudgetCPU, "overhead_cpu", "%v%%", percent(cmp.Or(l.BudgetCPU, DefaultBudget)))
	add(l.BudgetPause != was.BudgetPause, "overhead_pause", "%v", l.BudgetPause)
	add(l.SamplingShare != was.SamplingShare, "sampling_max_overhead", "%v%%", percent(l.SamplingShare))
	add(l.LiveSamples != was.LiveSamples, "sampling_target_live_samples", "%d", l.LiveSamples)
	add(l.MaxWriteRate != was.MaxWriteRate, "max_write_rate", "%d", l.MaxWriteRate)
	add(l.MaxTotalWriteRate != was.MaxTotalWriteRate, "max_total_write_rate", "%d", l.MaxTotalWriteRate)
	add(l.MaxCPU != was.MaxCPU, "agent_max_cpu", "%v%%", percent(l.MaxCPU))
	add(l.MaxMemory != was.MaxMemory, "agent_max_memory", "%d", l.MaxMemory)
	add(l.MaxReferencePause != was.MaxReferencePause, "max_reference_pause", "%v", l.MaxReferencePause)
	add(l.ReferencesInterval != was.ReferencesInterval, "references_interval", "%v", l.ReferencesInterval)
	return strings.Join(out, ", ")
}
