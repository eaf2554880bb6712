package agent

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"
)

// Limits are those settings of Config that bound what is recorded, and how, while the agent runs: SetLimits changes them for recordings that are
// under way.
type Limits struct {
	BudgetCPU                       float64
	BudgetPause                     time.Duration
	SamplingShare                   float64
	LiveSamples                     uint64
	MaxWriteRate, MaxTotalWriteRate int64
	MaxCPU                          float64
	MaxMemory                       int64
}

// Limits gives those of c.
func (c *Config) Limits() Limits {
	return Limits{c.BudgetCPU, c.BudgetPause, c.SamplingShare, c.LiveSamples, c.MaxWriteRate, c.MaxTotalWriteRate, c.MaxCPU, c.MaxMemory}
}

// Budget is what a recording is held to, as it stands in status. 0: no bound.
type Budget struct {
	CPU           float64 `json:"overhead_cpu"` // of wall time
	PauseNS       int64   `json:"overhead_pause_ns"`
	SamplingShare float64 `json:"sampling_max_overhead"` // of wall time
	LiveSamples   uint64  `json:"sampling_target_live_samples"`
	WriteRate     int64   `json:"max_write_rate"` // bytes a second
}

// SetLimits makes all recordings heed l, within a second or so.
func (a *Agent) SetLimits(l Limits) {
	a.rates.limit(l.MaxTotalWriteRate)
	a.self.limit(l.MaxCPU, l.MaxMemory)
	a.limits.Store(&l)
}

// limit makes the bounds of the agent itself what they say.
func (f *self) limit(cpu float64, mem int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if mem != f.maxMem && f.memoryLimit != 0 { // somebody watches
		debug.SetMemoryLimit(memoryLimit(mem, f.memoryLimit))
	}
	f.maxCPU, f.maxMem, f.over = cpu, mem, 0
	f.cpu.limit(int64(cpu * float64(time.Second)))
}

// memoryLimit gives what Go's runtime is to keep to; was is what it had before anybody said anything.
func memoryLimit(max, was int64) int64 {
	if max == 0 {
		return was
	}
	return min(max, was)
}

// heed takes over limits that have changed.
func (s *session) heed() error {
	if s.limits == nil {
		return nil
	}
	l := s.limits.Load()
	if l == s.heeded {
		return nil
	}
	was := s.heeded
	s.heeded = l
	s.set(func(st *Status) {
		st.Budget = &Budget{l.BudgetCPU, int64(l.BudgetPause), s.samplingShare(), l.LiveSamples, l.MaxWriteRate}
	})
	if s.rate.shared = nil; l.MaxTotalWriteRate > 0 {
		s.rate.shared = s.rates
	}
	s.rate.max = l.MaxWriteRate
	if was == nil {
		return nil
	}
	wishes := func() [4]uint64 {
		return [4]uint64{s.rateDepth, s.govDepth, s.cpuDepth, max(s.govInterval, s.sampInterval)}
	}
	wished := wishes()
	var errs []error
	if l.BudgetCPU == 0 && was.BudgetCPU != 0 {
		errs = append(errs, s.ring.SetEpochMax(0), s.ring.SetCostMax(0))
	}
	switch {
	case s.gov == nil:
	case l.BudgetCPU == 0 && l.BudgetPause == 0:
		s.gov, s.govDepth, s.govInterval = nil, 0, 0
	default:
		s.gov.SetBudget(governed(l))
	}
	if s.samp != nil {
		s.samp.SetBudget(max(s.samplingShare(), 0), l.LiveSamples)
	}
	if l.MaxWriteRate == 0 && l.MaxTotalWriteRate == 0 {
		s.rates.leave(&s.rate)
		s.rate, s.rateDepth = rate{key: s.rate.key}, 0
	}
	if l.MaxCPU == 0 && s.cpuRate.shared != nil {
		s.self.cpu.leave(&s.cpuRate)
		s.cpuRate, s.cpuDepth = rate{}, 0
		s.st.Ease(0)
	}
	if !s.has {
		return errors.Join(errs...)
	}
	if what := l.differ(was); what != "" {
		text := "limits were changed: " + what
		s.log.Info().Msg(text)
		s.note(text)
	}
	if wishes() != wished { // who asked for less is no more
		errs = append(errs, s.setDepth())
		if s.govInterval|s.sampInterval == 0 {
			errs = append(errs, s.ring.SetInterval(s.jvm.Interval))
		} else {
			errs = append(errs, s.setInterval())
		}
	}
	return errors.Join(errs...)
}

// governed gives the budget of a governor, whose share is above 0.
func governed(l *Limits) (share float64, pause time.Duration) {
	if l.BudgetCPU == 0 {
		return 1, l.BudgetPause
	}
	return l.BudgetCPU, l.BudgetPause
}

// samplingShare is what sampling may take: what was asked for, else the default of JVMs that are sampled at the default interval; 0 or less: any.
func (s *session) samplingShare() float64 {
	share := s.heeded.SamplingShare
	if share == 0 && (!s.has || s.jvm.Interval == DefaultSampling) {
		share = DefaultSamplingShare
	}
	return max(share, 0)
}

// differ says what is different from before, by the names of the configuration.
func (l *Limits) differ(was *Limits) string {
	var out []string
	say := func(differs bool, key, format string, v any) {
		if differs {
			out = append(out, key+" "+fmt.Sprintf(format, v))
		}
	}
	percent := func(f float64) float64 { return math.Round(1e6*max(f, 0)) / 1e4 }
	say(l.BudgetCPU != was.BudgetCPU, "overhead_cpu", "%v%%", percent(l.BudgetCPU))
	say(l.BudgetPause != was.BudgetPause, "overhead_pause", "%v", l.BudgetPause)
	say(l.SamplingShare != was.SamplingShare, "sampling_max_overhead", "%v%%", percent(l.SamplingShare))
	say(l.LiveSamples != was.LiveSamples, "sampling_target_live_samples", "%d", l.LiveSamples)
	say(l.MaxWriteRate != was.MaxWriteRate, "max_write_rate", "%d", l.MaxWriteRate)
	say(l.MaxTotalWriteRate != was.MaxTotalWriteRate, "max_total_write_rate", "%d", l.MaxTotalWriteRate)
	say(l.MaxCPU != was.MaxCPU, "agent_max_cpu", "%v%%", percent(l.MaxCPU))
	say(l.MaxMemory != was.MaxMemory, "agent_max_memory", "%d", l.MaxMemory)
	return strings.Join(out, ", ")
}
