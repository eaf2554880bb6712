package drag

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// clock says how much was allocated up to a time. Between two collections the program allocates evenly.
type clock struct {
	times  []uint64  // ns, ends of spans: starts of collections
	bytes  []float64 // allocated up to there
	eden   uint64    // used, after the newest collection
	old    uint64
	any    bool
	now    float64
	before uint64 // when the newest collection was over
	begins []uint64
}

// epoch takes in what a collection says of the spaces.
func (c *clock) epoch(e *trace.Epoch) {
	var edenBefore, edenAfter, oldBefore, oldAfter uint64
	for _, s := range e.Spaces {
		switch s.Kind {
		case trace.SpaceEden:
			edenBefore, edenAfter = edenBefore+s.UsedBefore, edenAfter+s.UsedAfter
		case trace.SpaceOld:
			oldBefore, oldAfter = oldBefore+s.UsedBefore, oldAfter+s.UsedAfter
		}
	}
	if c.any {
		c.now += float64(edenBefore-min(edenBefore, c.eden)) + float64(oldBefore-min(oldBefore, c.old))
	}
	c.any, c.eden, c.old = true, edenAfter, oldAfter
	c.begins = append(c.begins, min(c.before, e.Pause.Start))
	c.times, c.bytes = append(c.times, e.Pause.Start), append(c.bytes, c.now)
	c.before = e.Pause.Start + e.Pause.Dur
}

// at gives the bytes that were allocated up to a time since the first collection.
func (c *clock) at(t uint64) float64 {
	i, _ := slices.BinarySearchFunc(c.times, t, cmp.Compare[uint64])
	switch {
	case len(c.times) == 0:
		return 0
	case i == len(c.times):
		return c.bytes[i-1]
	case i == 0:
		return 0
	case t <= c.begins[i]:
		return c.bytes[i-1]
	}
	part := float64(t-c.begins[i]) / float64(c.times[i]-c.begins[i])
	return c.bytes[i-1] + part*(c.bytes[i]-c.bytes[i-1])
}

func (c *clock) between(from, to uint64) float64 { return max(0, c.at(to)-c.at(from)) }
