package agent

import (
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/agent/governor"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// governEvery is how often the budget is looked at.
const governEvery = 100 * time.Millisecond

// governIdle governs while the ring has no data: what the next epoch may cost grows meanwhile.
func (s *session) governIdle(h shmring.Status) error {
	if h.State == shmring.StatePaused {
		return nil
	}
	if err := errors.Join(s.heed(), s.thrift(h)); err != nil || s.gov == nil {
		return err
	}
	return s.govern(h)
}

// govern keeps the probe's cost within the budget. What is asked for takes effect in the next pause.
func (s *session) govern(h shmring.Status) error {
	if s.heeded.BudgetCPU == 0 && s.heeded.BudgetPause == 0 || !s.has {
		return nil
	}
	if s.gov == nil {
		share, pause := governed(s.heeded)
		s.gov = governor.New(governor.Config{Share: share, Pause: pause, Depth: s.jvm.Depth, Interval: s.jvm.Interval})
	}
	now := time.Now()
	if now.Sub(s.governed) < governEvery {
		return nil
	}
	s.governed = now
	c, ok := s.gov.Look(governor.Look{Now: now, Probe: h.ProbeNS, Sample: h.SampleNS, Pause: s.longest, Depth: uint64(h.Depth), Cuts: h.EpochsCut})
	s.longest = 0
	if s.heeded.BudgetCPU > 0 {
		room := uint64(s.gov.Room())
		if err := errors.Join(s.ring.SetEpochMax(room), s.ring.SetCostMax(h.ProbeNS+h.SampleNS+room)); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	text := fmt.Sprintf("depth %s, sampling every %d KiB: %s", DepthName(c.Depth), c.Interval>>10, c.Why)
	s.log.Info().Msg(text)
	if c.Depth != s.govDepth && (s.govDepth != 0 || c.Depth != s.jvm.Depth) {
		s.noteDepth(text)
	} else {
		s.note(text)
	}
	s.govDepth, s.govInterval = c.Depth, c.Interval
	return errors.Join(s.setDepth(), s.setInterval())
}

// setInterval asks for the longer of the intervals that the budgets want.
func (s *session) setInterval() error {
	if want := max(s.govInterval, s.sampInterval); want != 0 {
		return s.ring.SetInterval(want)
	}
	return nil
}

// governSampling keeps the time that sampling takes, and the number of live samples, where they were asked to be.
func (s *session) governSampling(h shmring.Status) error {
	if !s.has || s.jvm.Flags&trace.JVMNoSampling != 0 {
		return nil
	}
	if s.samp == nil {
		s.samp = governor.NewSampling(governor.SamplingConfig{Interval: s.jvm.Interval, Share: s.samplingShare(), Live: s.heeded.LiveSamples})
	}
	live := uint64(0)
	if q, ok := s.live.est.Figure(); ok {
		live = q.Exact.Objects
	}
	n, why, ok := s.samp.Look(time.Now(), h.SampleNS, live, s.interval)
	if !ok {
		return nil
	}
	s.sampInterval = n
	text := fmt.Sprintf("sampling every %d KiB: %s", max(n, s.govInterval)>>10, why)
	s.log.Info().Msg(text)
	s.note(text)
	return s.setInterval()
}

// note writes a switch into the trace and into status.
func (s *session) note(text string) {
	s.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: s.time, Text: text}}}))
	s.flush()
	s.set(func(st *Status) { st.Switches++; st.LastSwitch = text })
}

// noteDepth is note for a switch of the depth.
func (s *session) noteDepth(text string) {
	s.note(text)
	s.set(func(st *Status) { st.DepthWhy = text })
}

// setDepth asks for the lowest of the depths that the disk, the budget and the agent's own CPU allow, as far as they have said anything.
func (s *session) setDepth() error {
	want := uint64(trace.DepthFull)
	if s.has {
		want = s.jvm.Depth
	}
	for _, d := range []uint64{s.rateDepth, s.govDepth, s.cpuDepth} {
		if d != 0 {
			want = min(want, d)
		}
	}
	return s.ring.SetDepth(uint32(want))
}
