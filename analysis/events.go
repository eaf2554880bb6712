package analysis

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// birth counts the samples of a site that were taken in the phase before a collection, and those of them that live at the end of the window, as far
// as is known.
type birth struct {
	gc           uint64
	taken, alive float64
}

// mostPhases is how many phases' births are kept, from a window's start on: batches that are let go are found where old space is not collected, which
// does not go on for long.
const mostPhases = 4096

// took counts a sample of the phase before collection gc, taken at t, in the births only if keep says so.
func (s *series) took(gc uint64, t float64, keep bool) {
	if s.taken > 0 {
		s.pause = max(s.pause, t-s.last)
	}
	s.last = max(s.last, t)
	s.taken++
	if !keep {
		return
	}
	if n := len(s.births); n > 0 && s.births[n-1].gc == gc {
		s.births[n-1].taken++
		return
	}
	s.births = append(s.births, birth{gc: gc, taken: 1})
}

// event is a change of a series at a time: a sample that lasts, or the death of one that did.
type event struct {
	t, bytes float64
	n        float64
	born     float64 // when what died was allocated
}

// begin is when what the recording knows of allocations begins: where the program's phase before the first collection did.
func (h *tracker) begin(c *heap.Collection) {
	if h.times == nil {
		h.from = float64(min(c.PhaseStart, c.Start)) / 1e9
	}
}

// bornAt is when a sample was allocated, as far as the window knows it.
func (h *tracker) bornAt(s *heap.Sample) float64 { return max(float64(s.Time)/1e9, h.from) }

// diedAt is a time for the death of a sample that collection c, the i-th, did not find: any since the one before, always the same for it. Garbage
// of old space waits for its collection, and goes with it.
func (h *tracker) diedAt(s *heap.Sample, c *heap.Collection, i int) float64 {
	t := h.times[i]
	if k := c.Kind; i == 0 || k == trace.PauseFull || k == trace.PauseRemark || k == trace.PauseMixed {
		return t
	}
	u := float64(s.ID*0x9e3779b97f4a7c15>>11) / (1 << 53)
	return max(h.bornAt(s), h.times[i-1]+u*(t-h.times[i-1]))
}

// event adds one while there are few collections.
func (h *tracker) event(s *series, e event) {
	if len(h.times) <= sparseMost+survived {
		s.events = append(s.events, e)
	}
}
