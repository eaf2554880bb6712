package session

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/heapcam/heapcam/agent/governor"
	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// governEvery is how often the governor gets an observation.
const governEvery = 100 * time.Millisecond

// budgets keep what the probe costs its JVM within the overhead budget, and what sampling costs within its own.
type budgets struct {
	governor *governor.Governor // nil: no budget, or nothing is known of the JVM yet
	sampling *governor.Sampling
	observed time.Time     // time of the governor's last observation
	longest  time.Duration // that an ordinary epoch added to a pause since then
	current  uint64        // sampling interval at the last pause, bytes

	asked            uint64 // interval of the recording, bytes
	depth            uint64 // that governor wants, 0: none yet
	governed, sparse uint64 // intervals that governor and sampling want, bytes; 0: none yet
}

// interval returns the longer of the wished intervals, bytes; 0: no wish. The governor wants none that is longer than
// the one that was asked for while it has room: then sampling alone decides.
func (b *budgets) interval() uint64 {
	if b.sparse != 0 && b.governed <= b.asked {
		return b.sparse
	}
	return max(b.governed, b.sparse)
}

// paused takes in an epoch's pause.
func (b *budgets) paused(p *trace.Pause) {
	b.current = p.Interval
	if p.Flags&trace.PauseSyncFollows == 0 && p.Kind != trace.PauseWalk {
		b.longest = max(b.longest, time.Duration(p.Probe))
	}
}

func (b *budgets) setLimits(l *Limits, in *stream) {
	switch {
	case b.governor == nil:
	case l.budget(in) == 0 && l.BudgetPause == 0:
		b.governor, b.depth, b.governed = nil, 0, 0
	default:
		b.governor.SetBudget(l.governed(in))
	}
	if b.sampling != nil {
		b.sampling.SetBudget(l.samplingShare(in), l.LiveSamples, l.budget(in))
	}
}

// governIdle governs while the ring has no data: what the next epoch may cost grows meanwhile.
func (s *Session) governIdle(h shmring.Status) error {
	if s.steer.budget.governor == nil {
		return nil
	}
	return s.govern(h)
}

// govern keeps the probe's cost within the budget. What it asks for takes effect in the next pause.
func (s *Session) govern(h shmring.Status) error {
	l, b := s.steer.limits, &s.steer.budget
	if !s.in.known || l.budget(&s.in) == 0 && l.BudgetPause == 0 {
		return nil
	}
	if b.governor == nil {
		share, pause := l.governed(&s.in)
		b.governor = governor.New(governor.Config{
			Share: share, Pause: pause, Depth: s.in.jvm.Depth, Interval: s.in.jvm.Interval,
		})
	}
	now := time.Now()
	if now.Sub(b.observed) < governEvery {
		return nil
	}
	b.observed = now
	c, change := b.governor.Observe(governor.Observation{
		Now: now, Probe: h.ProbeNS, Sample: h.SampleNS, Pause: b.longest, Depth: uint64(h.Depth), Cuts: h.EpochsCut,
		Walk:    [trace.DepthFull + 1]uint64{trace.DepthSurvivors: h.WalkSurvivors, trace.DepthFull: h.WalkFull},
		Listing: h.SyncPredicted, References: s.refs.unasked.spent, Storm: h.Storm > shmring.Monotonic(),
	})
	b.longest = 0
	if l.budget(&s.in) > 0 {
		room := uint64(b.governor.Room())
		if err := errors.Join(s.ring.SetEpochMax(room), s.ring.SetCostMax(h.ProbeNS+h.SampleNS+room)); err != nil {
			return err
		}
	}
	if !change {
		return nil
	}
	text := fmt.Sprintf("depth %s, sampling every %s: %s", DepthName(c.Depth),
		ui.Bytes(max(c.Interval, b.sparse)), c.Why)
	if before := cmp.Or(b.depth, s.in.jvm.Depth); c.Depth != before {
		s.logDepth(before, c.Depth, "", nil, c.Why)
	}
	if c.Interval != cmp.Or(b.governed, s.in.jvm.Interval) {
		logs.Write(&s.log, logs.IntervalChanged, logs.Interval.Of(c.Interval), logs.Cause.Of(c.Why))
	}
	if c.Depth != b.depth && (b.depth != 0 || c.Depth != s.in.jvm.Depth) {
		// without the interval, which later steps change
		s.set(func(st *Status) { st.DepthWhy = fmt.Sprintf("depth %s: %s", DepthName(c.Depth), c.Why) })
	}
	s.noteSwitch(text)
	b.depth, b.governed = c.Depth, c.Interval
	return errors.Join(s.setDepth(), s.setInterval())
}

// governSampling keeps the time that sampling takes, and the number of live samples, where they were asked to be.
func (s *Session) governSampling(h shmring.Status) error {
	l, b := s.steer.limits, &s.steer.budget
	if !s.in.known || s.in.jvm.Flags&trace.JVMNoSampling != 0 {
		return nil
	}
	if b.sampling == nil {
		b.asked = s.in.jvm.Interval
		c := governor.SamplingConfig{
			Interval: b.asked, Share: l.samplingShare(&s.in), Live: l.LiveSamples, Total: l.budget(&s.in),
		}
		if b.asked == DefaultSampling && !trace.Concurrent(s.in.jvm.Collector) {
			c.Least = LeastSampling
		}
		b.sampling = governor.NewSampling(c)
	}
	live := uint64(0)
	if _, ok := s.heap.live.total(); ok {
		live = uint64(s.heap.live.est.Alive())
	}
	n, why, change := b.sampling.Observe(time.Now(), governor.Spent{Sample: h.SampleNS, Probe: h.ProbeNS,
		Taken: h.Samples, Dropped: h.SamplesDropped, Full: h.SitesCut > 0}, live, b.current)
	if !change {
		return nil
	}
	b.sparse = n
	text := fmt.Sprintf("sampling every %s: %s", ui.Bytes(b.interval()), why)
	logs.Write(&s.log, logs.IntervalChanged, logs.Interval.Of(b.interval()), logs.Cause.Of(why))
	s.noteSwitch(text)
	return s.setInterval()
}
