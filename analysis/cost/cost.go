// Package cost adds up what recording cost a JVM, minute by minute, and the events that changed it. It reads blocks and
// needs no replay.
package cost

import (
	"fmt"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Minute is what the probe took in one minute of the stream's time. Times are ns.
type Minute struct {
	From        uint64 `json:"from_ns"` // since the probe began
	Span        uint64 `json:"span_ns"` // of it that the window covers
	Collections int    `json:"collections"`
	Pauses      uint64 `json:"pauses_ns"` // all of them, ours included
	Probe       uint64 `json:"probe_ns"`  // ours in ordinary epochs
	SyncPoints  int    `json:"sync_points"`
	Sync        uint64 `json:"sync_ns"`     // ours in sync points
	Walks       uint64 `json:"walks_ns"`    // stops that we asked for
	Sampling    uint64 `json:"sampling_ns"` // over all threads, as far as the recording says
	Lost        uint64 `json:"lost_epochs"`
	Longest     uint64 `json:"longest_ns"` // that we added to one pause, sync point included
}

// Stopped is how long the application stood still for us.
func (m *Minute) Stopped() uint64 { return m.Probe + m.Sync + m.Walks }

// Share is our part of the minute, sampling included.
func (m *Minute) Share() float64 {
	if m.Span == 0 {
		return 0
	}
	return float64(m.Stopped()+m.Sampling) / float64(m.Span)
}

// Event is something that changed what the probe costs: loading, a switch, a pause, a gap, the end.
type Event struct {
	Time uint64 `json:"time_ns"`
	Text string `json:"text"`
}

// Cost is heapcam's own share over a window.
type Cost struct {
	Schema   string   `json:"schema"` // heapcam.cost/1
	VM       string   `json:"vm"`
	Probe    string   `json:"probe"`
	T0WallMS uint64   `json:"t0_wall_ms"`
	Total    Minute   `json:"total"`
	Minutes  []Minute `json:"minutes"` // those in which something was recorded, in order
	Events   []Event  `json:"events"`
	// The ten seconds in which heapcam stopped the application for the longest.
	Busiest Busiest `json:"busiest"`
	// What sampling took is recorded once a minute and at the end. Until is the time up to which it is known, since the
	// probe began; null: to the end.
	Until *uint64 `json:"sampling_known_until_ns"`

	minutes     map[uint64]*Minute
	seen        map[Event]bool
	first, last uint64
	has         bool
	session     string
	sampled     trace.Sampling // the newest
	recent      recent
	lastPause   Minute // of the pause whose sync point may follow
	gc, gaps    uint64 // the newest collection, 0: none; how many lost ones gaps have reported since
}

const minute = uint64(60e9)

// New begins an account; Add its blocks in the order of the stream, then Close.
func New() *Cost {
	return &Cost{Schema: "heapcam.cost/1", minutes: map[uint64]*Minute{}, seen: map[Event]bool{}}
}

// maxMinutes bounds the account: ten years.
const maxMinutes = 10 * 366 * 24 * 60

func (c *Cost) at(t uint64) *Minute {
	n := t / minute
	m := c.minutes[n]
	if m == nil {
		if len(c.minutes) >= maxMinutes {
			return &Minute{}
		}
		m = &Minute{From: n * minute}
		c.minutes[n] = m
	}
	if !c.has || t < c.first {
		c.first = t
	}
	c.has, c.last = true, max(c.last, t)
	return m
}

func (c *Cost) event(t uint64, format string, args ...any) {
	e := Event{t, fmt.Sprintf(format, args...)}
	if !c.seen[e] { // each file repeats the events of the whole
		c.seen[e] = true
		c.Events = append(c.Events, e)
	}
}

// Add takes a block in. What cannot be decoded is an error, and left out.
func (c *Cost) Add(b trace.Block) error {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err != nil {
			return err
		}
		c.meta(m)
	case trace.KindEpoch:
		e, err := trace.DecodeEpoch(b)
		if err != nil {
			return err
		}
		p := &e.Pause
		m := c.at(p.Start)
		c.at(p.Start + p.Dur)
		if next := c.gc + 1 + c.gaps; c.gc != 0 && p.GC > next { // of a damaged part, no gap reports any
			m.Lost += p.GC - next
		}
		c.gc, c.gaps = p.GC, 0
		if p.Kind == trace.PauseWalk {
			m.Walks += p.Dur
			c.recent.add(p.Start, p.Dur)
			c.event(p.Start, "a stop without a collection: no collection came in time for the sync point")
			c.lastPause = Minute{From: p.Start, Longest: p.Dur}
		} else {
			m.Collections++
			m.Pauses += p.Dur
			m.Probe += p.Probe
			c.recent.add(p.Start, p.Probe)
			c.lastPause = Minute{From: p.Start, Longest: p.Probe}
		}
		m.Longest = max(m.Longest, c.lastPause.Longest)
	case trace.KindSync:
		y, err := trace.DecodeSync(b)
		if err != nil {
			return err
		}
		m := c.at(y.Time)
		if y.Objects > 0 { // at depth samples nothing is listed
			m.SyncPoints++
			c.event(y.Time, "sync point (%s): %s listed", in(syncReasons[:], y.Reason), ui.Plural(y.Objects, "object"))
		}
		if y.Reason != trace.SyncWalk { // the stop was counted whole
			m.Sync += y.Probe
			c.recent.add(y.Time, y.Probe)
			m.Longest = max(m.Longest, c.lastPause.Longest+y.Probe)
		}
	case trace.KindSlice:
		return c.slice(b)
	case trace.KindRefs:
		return c.references(b)
	case trace.KindGap:
		g, err := trace.DecodeGap(b)
		if err != nil {
			return err
		}
		c.at(g.Time).Lost += g.Epochs
		c.gaps += g.Epochs
		c.event(g.Time, "lost because %s: %s, %s", in(gapReasons[:], g.Reason), ui.Plural(g.Epochs, "collection"),
			ui.Plural(g.Samples, "sample"))
	case trace.KindEnd:
		e, err := trace.DecodeEnd(b)
		if err != nil {
			return err
		}
		c.at(e.Time)
		c.event(e.Time, "the recording ended: %s", in(endReasons[:], e.Reason))
	}
	return nil
}

// slice takes in a part of a listing.
func (c *Cost) slice(b trace.Block) error {
	y, err := trace.DecodeSlice(b)
	if err != nil {
		return err
	}
	m := c.at(y.Time)
	m.Sync += y.Probe
	c.recent.add(y.Time, y.Probe)
	m.Longest = max(m.Longest, c.lastPause.Longest+y.Probe)
	if y.Last() {
		m.SyncPoints++
		c.event(y.Time, "sync point (%s): listed in %s", in(syncReasons[:], y.Reason), ui.Plural(y.N, "slice"))
	}
	return nil
}

// references takes in a part of a reference listing. The first part says how long the JVM was stopped for it, also if
// the probe aborted it.
func (c *Cost) references(b trace.Block) error {
	if len(b.Payload) == 0 { // a part that its reader left out
		return nil
	}
	p, err := trace.DecodeRefs(b)
	if err != nil {
		return err
	}
	a := &p.About
	if !p.HasAbout || a.Dur == 0 {
		return nil
	}
	m := c.at(a.Time)
	c.at(a.Time + a.Dur)
	m.Walks += a.Dur
	c.recent.add(a.Time, a.Dur)
	m.Longest = max(m.Longest, a.Dur)
	if a.Refused != "" {
		c.event(a.Time, "a stop of %s for a reference listing that was not taken: %s", ui.Nanoseconds(a.Dur),
			a.Refused)
	} else {
		c.event(a.Time, "a stop of %s for a reference listing: %s, %s", ui.Nanoseconds(a.Dur),
			ui.Plural(a.Objects, "object"), ui.Plural(a.Slots, "reference"))
	}
	return nil
}

func (c *Cost) meta(m trace.Meta) {
	if m.HasJVM && m.JVM.Session != c.session {
		c.session = m.JVM.Session
		c.VM, c.Probe, c.T0WallMS = m.JVM.VM, m.JVM.Probe, m.JVM.T0WallMS
		how := "attached to the running JVM"
		if m.JVM.Flags&trace.JVMAtStart != 0 {
			how = "loaded at the JVM's start"
		}
		samples := "every allocation is sampled"
		if m.JVM.Interval > 0 {
			samples = "one sample in " + ui.Bytes(m.JVM.Interval)
		}
		c.event(0, "the probe (%s) was %s: depth %s, %s", m.JVM.Probe, how,
			trace.DepthNames.String(m.JVM.Depth), samples)
	}
	for _, n := range m.Texts() {
		c.event(n.Time, "%s", n.Text)
	}
	for _, s := range m.Sampling {
		had := c.sampled
		if s.Time < had.Time {
			continue
		}
		if s.NS >= had.NS && (had.Time > 0 || c.first < minute) {
			c.spread(had.Time, s.Time, s.NS-had.NS)
		}
		c.sampled = s
	}
}

// spread divides what sampling took between two times among the minutes between them. The part before the window is
// left out, as its pauses are: figures count from the beginning of the recording, which the ring may have lost.
func (c *Cost) spread(from, to, ns uint64) {
	if !c.has || to < c.first {
		return
	}
	if from < c.first {
		ns = uint64(float64(ns) * float64(to-c.first) / float64(to-from))
		from = c.first
	}
	if to <= from {
		c.at(to).Sampling += ns
		return
	}
	if (to-from)/minute > 1<<20 { // not of this world
		return
	}
	for t, left := from, ns; t < to; {
		end := min((t/minute+1)*minute, to)
		part := uint64(float64(ns) * float64(end-t) / float64(to-from))
		if end == to {
			part = left
		}
		left -= min(part, left)
		c.at(t).Sampling += part
		t = end
	}
}

// samplingLate is how much later than the newest figure of sampling a recording may end that is known to its end.
const samplingLate = uint64(2e9)

// Clone copies what Close has made.
func (c *Cost) Clone() *Cost {
	now := *c
	now.Events = slices.Clone(c.Events)
	return &now
}

// Known says whether it is known what sampling took up to time t.
func (c *Cost) Known(t uint64) bool { return c.Until == nil || t <= *c.Until }

// Close makes Minutes, Events and Total. Blocks may be added and Close be called again.
func (c *Cost) Close() {
	c.Minutes, c.Total, c.Until = nil, Minute{}, nil
	if c.last > c.sampled.Time+samplingLate {
		until := c.sampled.Time
		c.Until = &until
	}
	for _, m := range c.minutes {
		from, to := max(m.From, c.first), min(m.From+minute, c.last)
		m.Span = max(to, from) - from
		c.Minutes = append(c.Minutes, *m)
		t := &c.Total
		t.Collections += m.Collections
		t.SyncPoints += m.SyncPoints
		t.Pauses += m.Pauses
		t.Probe += m.Probe
		t.Sync += m.Sync
		t.Walks += m.Walks
		t.Sampling += m.Sampling
		t.Lost += m.Lost
		t.Longest = max(t.Longest, m.Longest)
	}
	c.Total.From, c.Total.Span = c.first, c.last-c.first
	c.Busiest = c.recent.busiest
	c.Busiest.Span = min(Stretch, c.Total.Span)
	sort.Slice(c.Minutes, func(i, j int) bool { return c.Minutes[i].From < c.Minutes[j].From })
	sort.SliceStable(c.Events, func(i, j int) bool { return c.Events[i].Time < c.Events[j].Time })
}
