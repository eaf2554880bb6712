package collection

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// SinceSweep follows whether G1 may have freed or filled regions since the newest listing: of JDK 25 it puts fillers
// over what is dead, and when such a region is freed the probe's census counts them, and the replay what it knew there.
type SinceSweep struct{ trace.Sweeps }

func (s *SinceSweep) Collection(c *heap.Collection) {
	s.Pause(&c.Pause)
	if c.Synced {
		s.Listed()
	}
}
