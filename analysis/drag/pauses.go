package drag

import "github.com/heapcam/heapcam/trace"

type pause struct{ start, kind uint64 }

// pauses are all pauses so far, oldest first.
type pauses struct {
	at []pause
	g1 bool
}

// before says since when an object lived at least that the newest pause, of that kind, found dead, and most likely: the
// newest earlier pause that could have found it had not. Young collections do not look at old space. In that of G1 a
// Remark finds what was dead when its marking began, which no pause tells: after the Remark before it, and most likely
// not long before its own.
func (p *pauses) before(kind uint64) (low, likely uint64) {
	young := kind != trace.PauseFull && (!p.g1 || kind == trace.PauseYoung)
	for i := len(p.at) - 2; i >= 0; i-- {
		x := p.at[i]
		switch {
		case x.kind == trace.PauseWalk: // nothing was collected
		case young && p.g1 && (x.kind == trace.PauseRemark || x.kind == trace.PauseCleanup):
		case young, x.kind == trace.PauseFull:
			return x.start, max(likely, x.start)
		case !p.g1 || x.kind != trace.PauseRemark:
		case likely == 0:
			likely = x.start
		default:
			return x.start, likely
		}
	}
	return 0, likely
}
