package analysis

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// sinceSweep follows whether G1 may have freed or filled regions since the newest listing: of JDK 25 it puts fillers over what is dead, and
// when such a region is freed the probe's census counts them, and the replay what it knew there.
type sinceSweep struct {
	swept    bool
	sweeping bool // a Remark, and no Cleanup yet
}

func (s *sinceSweep) collection(c *heap.Collection) {
	switch {
	case c.Kind == trace.PauseRemark || c.Kind == trace.PauseCleanup:
		s.swept, s.sweeping = true, c.Kind == trace.PauseRemark
	case c.Synced && !s.sweeping:
		s.swept = false
	}
}

