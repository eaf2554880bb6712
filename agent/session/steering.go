package session

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/heapcam/heapcam/agent/logs"
	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/emergency"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// steering holds the limits that lower depth, sampling and compression. Each limit has a wish, the lowest depth and the
// longest interval win.
type steering struct {
	source func() *Limits // of the agent
	limits *Limits        // that the session has applied
	write  writeLimit
	cpu    cpuLimit
	budget budgets

	lowSince, wokenAt time.Time // the depth in force is below the allowed one; of the last stop for that
	wakes             uint      // such stops since it was not
}

// leave gives back what the session has of shared limits.
func (t *steering) leave() {
	t.write.shared.Leave(&t.write.rate)
	t.cpu.process.CPU().Leave(&t.cpu.rate)
}

// wishes are the depths and the interval that the limits want, 0: no limit wants any.
type wishes struct{ write, budget, cpu, interval uint64 }

func (t *steering) wishes() wishes {
	return wishes{t.write.depth, t.budget.depth, t.cpu.depth, t.budget.interval()}
}

// depth returns the lowest of the wished depths, at most asked.
func (w wishes) depth(asked uint64) uint64 {
	for _, d := range []uint64{w.write, w.budget, w.cpu} {
		if d != 0 {
			asked = min(asked, d)
		}
	}
	return asked
}

// setDepth asks the probe for the depth that the limits want.
func (s *Session) setDepth() error {
	asked := uint64(trace.DepthFull)
	if s.in.known {
		asked = s.in.jvm.Depth
	}
	return s.ring.SetDepth(uint32(s.steer.wishes().depth(asked)))
}

const (
	// idleTime is how long a JVM without collections counts as idle, wakeTime how long it is left without a depth that
	// it may have, and wakeEvery the least time between two stops for that. It doubles, maxWakes times, while they
	// do not help.
	idleTime  = 20 * time.Second
	wakeTime  = 5 * time.Second
	wakeEvery = time.Minute
	maxWakes  = 6
)

// idleFor says that no collection has come for d.
func (s *Session) idleFor(d time.Duration) bool {
	since := s.in.pauseAt
	if since.IsZero() {
		since = s.in.began
	}
	return time.Since(since) > d
}

// wake gives an idle JVM the depth that the limits allow: it takes one from a pause, and has none. A stop lists its
// heap.
func (s *Session) wake(h shmring.Status) error {
	t, now := &s.steer, time.Now()
	if !s.in.known || h.SyncTooLong || h.State != shmring.StateRecording ||
		uint64(h.Depth) >= t.wishes().depth(s.in.jvm.Depth) {
		t.lowSince, t.wakes = now, 0
		return nil
	}
	if now.Sub(t.lowSince) < wakeTime || !s.idleFor(wakeTime) || now.Sub(t.wokenAt) < wakeEvery<<t.wakes {
		return nil
	}
	t.wokenAt, t.wakes = now, min(t.wakes+1, maxWakes)
	_, err := s.syncs.emergency.Step(emergency.View{Answered: h.EmergencyDone, Now: now})
	return err
}

// setInterval asks the probe for the sampling interval that the limits want, if they want one.
func (s *Session) setInterval() error {
	if want := s.steer.wishes().interval; want != 0 {
		return s.ring.SetInterval(want)
	}
	return nil
}

// applyLimits takes over limits of the agent that have changed.
func (s *Session) applyLimits() error {
	t := &s.steer
	l, was := t.source(), t.limits
	if l == was {
		return nil
	}
	t.limits = l
	s.showBudget()
	if was == nil {
		t.write.setLimits(l)
		return nil
	}
	before := t.wishes()
	var errs []error
	if l.budget(&s.in) == 0 && was.budget(&s.in) != 0 {
		errs = append(errs, s.ring.SetEpochMax(0), s.ring.SetCostMax(0))
	}
	t.write.setLimits(l)
	t.budget.setLimits(l, &s.in)
	if l.MaxCPU == 0 && t.cpu.clear() {
		s.out.st.Ease(0)
	}
	if !s.in.known {
		return errors.Join(errs...)
	}
	if what := l.differ(was); what != "" {
		logs.Write(&s.log, logs.LimitsChanged, logs.Setting.Of(what))
		s.noteSwitch("limits were changed: " + what)
	}
	if after := t.wishes(); after != before { // a limit that wanted less is gone
		errs = append(errs, s.setDepth())
		if after.interval == 0 {
			errs = append(errs, s.ring.SetInterval(s.in.jvm.Interval))
		} else {
			errs = append(errs, s.setInterval())
		}
	}
	return errors.Join(errs...)
}

// showBudget puts the limits in force into status.
func (s *Session) showBudget() {
	l := s.steer.limits
	b := Budget{l.budget(&s.in), int64(l.BudgetPause), l.samplingShare(&s.in), l.LiveSamples, l.MaxWriteRate}
	s.set(func(st *Status) { st.Budget = &b })
}

// writeLimit keeps a recording within max_write_rate and its part of max_total_write_rate by lowering the depth.
type writeLimit struct {
	rate   quota.RateLimit
	shared *quota.SharedRate // of max_total_write_rate
	depth  uint64            // wanted, 0: none yet
}

func newWriteLimit(shared *quota.SharedRate) writeLimit {
	return writeLimit{rate: quota.NewRateLimit("max_write_rate"), shared: shared}
}

func (w *writeLimit) setLimits(l *Limits) {
	if l.MaxWriteRate == 0 && l.MaxTotalWriteRate == 0 {
		w.shared.Leave(&w.rate)
		w.rate, w.depth = quota.NewRateLimit("max_write_rate"), 0
		return
	}
	shared := w.shared
	if l.MaxTotalWriteRate == 0 {
		shared = nil
	}
	w.rate.SetLimits(l.MaxWriteRate, shared)
}

// observe takes the bytes written so far and the depth in force, and says whether another depth is wanted, and why.
func (w *writeLimit) observe(now time.Time, written int64, depth uint64) (why quota.Limit, change bool) {
	want, change := w.rate.Observe(now, written, depth)
	if !change {
		return why, false
	}
	w.depth = want
	return w.rate.Cause(), true
}

// limitWrites asks the probe for another depth if the recording writes too much, or may write more.
func (s *Session) limitWrites(written int64) error {
	why, change := s.steer.write.observe(time.Now(), written, s.in.depth)
	if !change {
		return nil
	}
	depth := DepthName(s.steer.write.depth)
	s.logDepth(s.in.depth, s.steer.write.depth, why.Key, why.PerSecond, "")
	s.noteDepth(fmt.Sprintf("depth %s: %s allows %s a second", depth, why.Key, ui.Bytes(why.PerSecond)))
	return s.setDepth()
}

// logDepth logs that a limit changes the depth. setting and limit, or cause, say which.
func (s *Session) logDepth(before, now uint64, setting string, limit any, cause string) {
	if now > before {
		logs.Write(&s.log, logs.DepthRaised, logs.Depth.Of(DepthName(now)), logs.Setting.Of(setting),
			logs.Limit.Of(limit), logs.Cause.Of(cause))
		return
	}
	logs.Write(&s.log, logs.DepthLowered, logs.Depth.Of(DepthName(now)), logs.Setting.Of(setting),
		logs.Limit.Of(limit), logs.Cause.Of(cause))
}

// cpuLimit keeps what a recording takes of the agent's CPU within its part of agent_max_cpu: first it is compressed
// faster, then recorded at a lower depth.
type cpuLimit struct {
	rate    quota.RateLimit
	process *quota.Process
	spent   time.Duration // CPU time of the agent for the recording
	asked   uint64        // depth that the probe was loaded with, 0: rate has not begun
	top     uint64        // level of that depth with compression as configured
	depth   uint64        // wanted, 0: none yet
}

// cpuChange is what a step of the CPU limit wants.
type cpuChange struct {
	depth uint64
	ease  int // how much less is done to compress, 0 to quota.EaseLevels
	why   quota.Limit
	lower bool // the depth changes, and not compression alone
}

// begin starts to limit. left is the depth that an earlier agent left, asked the one that the probe was loaded with.
// It returns how much less is done to compress from now on.
func (c *cpuLimit) begin(asked, left uint64, compressed bool) (ease int) {
	c.asked, c.top = asked, asked
	if compressed {
		c.top = asked + quota.EaseLevels
	}
	level := c.top
	if left >= trace.DepthSamples && left < asked {
		level, c.depth, ease = left, left, quota.EaseLevels
	}
	c.rate = quota.NewCPULimit(c.process.CPU(), c.top, level)
	return ease
}

// clear ends limiting and says whether it had begun.
func (c *cpuLimit) clear() (was bool) {
	if c.asked == 0 {
		return false
	}
	c.process.CPU().Leave(&c.rate)
	c.rate, c.asked, c.depth = quota.RateLimit{}, 0, 0
	return true
}

// observe says whether another level is wanted.
func (c *cpuLimit) observe(now time.Time) (x cpuChange, change bool) {
	want, change := c.rate.Observe(now, int64(c.spent), c.rate.Level())
	if !change {
		return x, false
	}
	was := c.depth
	x = cpuChange{depth: min(want, c.asked), ease: int(c.top - max(want, c.asked)), why: c.rate.Cause()}
	x.lower = x.depth != was && (was != 0 || x.depth != c.asked)
	c.depth = x.depth
	return x, true
}

var easeNames = [quota.EaseLevels + 1]string{"as configured", "fast", "little"}

// limitCPU keeps what the recording takes of the agent's CPU within its part of agent_max_cpu.
func (s *Session) limitCPU(h shmring.Status) error {
	s.bytes.Store(int64(s.defs.Bytes + cap(s.out.own) + s.heap.live.bytes()))
	c := &s.steer.cpu
	if s.steer.limits.MaxCPU == 0 || !s.in.known {
		return nil
	}
	if c.asked == 0 {
		if ease := c.begin(s.in.jvm.Depth, uint64(h.DepthWanted), s.cfg.Compression != "none"); ease > 0 {
			s.out.st.Ease(ease)
		}
	}
	if s.idleFor(idleTime) {
		c.rate.Idle()
	}
	before := cmp.Or(c.depth, c.asked)
	x, change := c.observe(time.Now())
	if !change {
		return nil
	}
	cores := math.Round(1e3*float64(x.why.PerSecond)/float64(time.Second)) / 1e3
	text := fmt.Sprintf("depth %s, compression %s: %s allows %.2g %% of a core", DepthName(x.depth),
		easeNames[x.ease], x.why.Key, 100*float64(x.why.PerSecond)/float64(time.Second))
	s.out.st.Ease(x.ease)
	if !x.lower { // that shows in the size of the window alone
		logs.Write(&s.log, logs.CompressionChanged, logs.Compression.Of(easeNames[x.ease]),
			logs.Setting.Of(x.why.Key), logs.Limit.Of(cores))
		s.noteSwitch(text)
		return nil
	}
	s.logDepth(before, x.depth, x.why.Key, cores, "")
	s.noteDepth(text)
	return s.setDepth()
}
