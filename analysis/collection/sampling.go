package collection

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Sampling is the newest sampling interval, and whether `--sampling 0` was given up.
type Sampling struct {
	// The newest sampling interval; 0: each allocation.
	Interval uint64 `json:"sampling_interval_bytes"`
	// From this collection on not each allocation was sampled, though `--sampling 0` asked for that; absent: none.
	Longer uint64 `json:"sampling_given_up_at,omitempty"`
}

// Follow takes in a collection. asked is the interval that the recording began with.
func (s *Sampling) Follow(asked uint64, c *heap.Collection) {
	switch s.Interval = c.Interval; {
	case asked != 0 || c.Interval == 0:
		s.Longer = 0
	case s.Longer == 0:
		s.Longer = c.GC
	}
}

// GivenUp says since when `--sampling 0` is given up, and why, as far as the number of lost samples tells; "" if it is
// not.
func (s *Sampling) GivenUp(lost uint64) ui.Flow {
	if s.Longer == 0 {
		return ""
	}
	why := ui.Flow("`heapcam cost` says why")
	if lost > 0 {
		why = "there was no room for all samples"
	}
	return ui.Flowf("`--sampling 0` was given up from collection %d on: %s", s.Longer, why)
}
