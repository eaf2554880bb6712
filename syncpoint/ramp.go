package syncpoint

import "github.com/heapcam/heapcam/trace"

// A listing may be spread over several pauses (docs/design/0019-rolling-sync-points.md): a *ramp* of *slices*. The file
// begins with the first one and is complete with the last one. Invariants beside those of the plan:
//
//  6. While a ramp is under way no other sync point is requested, unless something of it was lost.
//  7. A ramp that failed counts as a file that could not begin (invariant 3).
//  8. A stop for one slice is requested only when the ramp is late: by time or by predicted size. Two are at least
//     stepEvery apart, and there is none for a ramp that came after a failed one.
//  9. A ramp that begins anew in its file keeps its clock and its size.
//  10. A sync point in one piece ends a ramp: the probe goes on with none.

const (
	lateAfter = 300e9 // ns after which a ramp is late
	stepEvery = 200e6 // ns between two stops for a slice
)

// ramp is the ramp under way.
type ramp struct {
	open     bool
	began    uint64 // ns of the stream
	stepped  uint64 // the last stop of its own
	from     int64  // bytes of the file at the first slice
	all      uint64 // words to be listed at its beginning
	left     uint64
	backsOff bool // the one before has failed
}

// Ramping says that a ramp is under way.
func (p *Plan) Ramping() bool { return p.ramp.open }

// Slice takes in a slice that was stored; active is the size of the open file behind it.
func (p *Plan) Slice(s *trace.Slice, active int64) {
	r := &p.ramp
	if s.First() {
		all := uint64(0)
		for _, x := range s.Pending {
			all += x.Words
		}
		if !r.open {
			*r = ramp{open: true, began: s.Time, stepped: s.Time, from: active, backsOff: p.fails > 0}
		}
		r.all = all
		p.asked, p.since, p.need = true, 0, false
	}
	r.left = s.Left
	if s.Last() && r.open {
		r.open = false
		p.want, p.need, p.asked, p.since, p.fails, p.skip = false, false, false, 0, 0, true
	}
}

// Late says whether the ramp needs a stop of its own for its next slice. now is the stream's time, ns; active the size
// of the open file, target T.
func (p *Plan) Late(now uint64, active, target int64) bool {
	r := &p.ramp
	if !r.open || r.backsOff || now < r.stepped+stepEvery {
		return false
	}
	predicted := float64(active - r.from)
	if listed := r.all - min(r.left, r.all); listed > 0 {
		predicted *= float64(r.all) / float64(listed)
	}
	return now > r.began+lateAfter || predicted > float64(target)/4
}

// Stepped says that a stop for a slice was requested.
func (p *Plan) Stepped(now uint64) { p.ramp.stepped = now }

// rampLost says that a part of the ramp is missing: another one has to begin, after a while.
func (p *Plan) rampLost() {
	if p.ramp.open {
		p.ramp.open = false
		p.Failed()
	}
}
