package session

import (
	"time"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// maxLiveTypes bounds the classes the estimate is kept for, redefinitions of a resumed session included.
const maxLiveTypes = 1 << 20

// live feeds the live estimator of package coverage. What it cannot read it does not judge: the figure is unknown
// then.
type live struct {
	types *trace.TypeTable
	est   *coverage.Live
	gc    uint64
	ended uint64 // when that collection had, ns of the stream

	judged   time.Time // when judgment was worked out
	judgment *Quality
}

const qualityEvery = time.Second

func newLive() *live {
	t := trace.NewTypeTable(8)
	return &live{types: t, est: coverage.NewLive(t)}
}

func (l *live) jvm(j *trace.JVM)          { l.types.SetAlign(j.Align); l.est.JVM(j) }
func (l *live) samples(ss []trace.Sample) { l.est.Samples(ss) }
func (l *live) epoch(e *trace.Epoch)      { l.gc = e.Pause.GC; l.est.Epoch(e) }
func (l *live) unknown()                  { l.est.Lost() }

func (l *live) defs(types []trace.Type) {
	if l.types.Len()+len(types) > maxLiveTypes || l.types.DefineAll(types) != nil {
		l.est.Lost()
	}
}

// keep makes the table anew, of the types of d alone, if it holds many others.
func (l *live) keep(d *definitions.Tables, align uint64) {
	if l.types.Len() < 2*d.NumTypes()+keepTypes {
		return
	}
	*l.types = *trace.NewTypeTable(align)
	// In their order: ids that lie close together take little. All of them were defined before.
	d.EachType(func(t trace.Type) { _ = l.types.Define(t) })
}

// keepTypes is how many types too many are not worth a new table.
const keepTypes = 4096

func (l *live) sync(s *trace.Sync) {
	l.gc = s.GC
	if l.est.Sync(s) != nil {
		l.est.Lost()
	}
}

func (l *live) slice(s *trace.Slice) {
	l.gc = s.GC
	if l.est.Slice(s) != nil {
		l.est.Lost()
	}
}

// bytes is about what it holds: its samples are most of it.
func (l *live) bytes() int { return l.est.Held() * liveBytes }

// liveBytes is what a sample takes in its table.
const liveBytes = 64

// total gives what lives, and whether that is known.
func (l *live) total() (coverage.Count, bool) { return l.est.Total() }

// quality gives the figure, which may be as old as qualityEvery: it costs about as much as the rest of a step.
func (l *live) quality(now time.Time) *Quality {
	if now.Sub(l.judged) >= qualityEvery {
		l.judged, l.judgment = now, l.newQuality()
	}
	return l.judgment
}

func (l *live) newQuality() *Quality {
	q, ok := l.est.Figure()
	if !ok {
		return nil
	}
	live := q.Live()
	return &Quality{GC: l.gc, Objects: live.Objects, Bytes: live.Bytes, Exact: q.Exact.Bytes,
		Proven: q.Proven.Bytes, Few: q.Candidates.Bytes,
		Inferred: q.Inferred.Bytes, BeforeRecording: q.Before.Bytes, Unknown: q.Unknown.Bytes}
}

// heapView follows the live heap: for the status, for summaries, and for what is known of classes that have gone.
type heapView struct {
	live *live
	view overview // of the open file, since its last summary

	profiles profiler
	tables   tabler
}

// epoch takes in a collection, and says whether a summary is to be written before it gathers too many.
func (v *heapView) epoch(e *trace.Epoch) (full bool) {
	v.live.epoch(e)
	total, known := v.live.total()
	v.view.epoch(e, total, known)
	return len(v.view.rows) == trace.MaxCollectionRows
}
