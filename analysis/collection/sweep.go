package collection

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// SinceSweep follows whether G1 may have freed or filled regions since the newest listing: of JDK 25 it puts fillers
// over what is dead, and when such a region is freed the probe's census counts them, and the replay what it knew there.
type SinceSweep struct{ trace.Sweeps }

// Of gives what each collection of r has to be given to.
func (s *SinceSweep) Of(r heap.Reader) func(*heap.Collection) {
	return func(c *heap.Collection) {
		s.JVM(&r.Position().JVM)
		s.Collection(c)
	}
}

// Collection takes in the next collection of a recording of the JVM that was given last.
func (s *SinceSweep) Collection(c *heap.Collection) {
	s.Pause(&c.Pause)
	if c.Slice != 0 {
		s.Slice(c.Slice&trace.SliceFirst != 0, c.Slice&trace.SliceLast != 0)
	} else if c.Synced {
		s.Listed()
	}
}
