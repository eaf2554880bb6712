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

// govern keeps the probe's cost within the budget. What is asked for takes effect in the next pause.
func (s *session) govern(h shmring.Status) error {
	if s.cfg.BudgetCPU == 0 && s.cfg.BudgetPause == 0 || !s.has {
		return nil
	}
	if s.gov == nil {
		share := s.cfg.BudgetCPU
		if share == 0 {
			share = 1
		}
		s.gov = governor.New(governor.Config{Share: share, Pause: s.cfg.BudgetPause, Depth: s.jvm.Depth, Interval: s.jvm.Interval})
	}
	now := time.Now()
	if now.Sub(s.governed) < governEvery {
		return nil
	}
	s.governed = now
	c, ok := s.gov.Look(governor.Look{Now: now, Probe: h.ProbeNS, Sample: h.SampleNS, Pause: s.longest, Depth: uint64(h.Depth)})
	s.longest = 0
	if !ok {
		return nil
	}
	text := fmt.Sprintf("depth %s, sampling every %d KiB: %s", DepthName(c.Depth), c.Interval>>10, c.Why)
	s.log.Info().Msg(text)
	s.push(trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: s.time, Text: text}}}))
	s.flush()
	s.set(func(st *Status) { st.Switches++; st.LastSwitch = text })
	s.govDepth = c.Depth
	return errors.Join(s.setDepth(), s.ring.SetInterval(c.Interval))
}

// setDepth asks for the lower of the depths that the disk and the budget allow, as far as they have said anything.
func (s *session) setDepth() error {
	want := uint64(trace.DepthFull)
	for _, d := range []uint64{s.rateDepth, s.govDepth} {
		if d != 0 {
			want = min(want, d)
		}
	}
	return s.ring.SetDepth(uint32(want))
}
