package session

import (
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// endReasons are what END says where the probe ended in a state. A refusal is no end.
var endReasons = map[shmring.State]uint64{
	shmring.StateGoodbye: trace.EndDeath, shmring.StateDetached: trace.EndDetached,
	shmring.StateGaveUp: trace.EndGaveUp,
}

// finish notes how the JVM ended. gone: its process is no longer there. It was killed only if the ring does not say
// otherwise: a recorder that was stopped meanwhile finds neither process nor an unread end.
func (s *Session) finish(gone bool) {
	killed := gone
	if h, err := s.ring.Status(); err == nil {
		killed = gone && !h.State.Ended()
		s.recordGaps(s.losses.atEnd(h, s.in.time))
		s.recordEnd(h)
		s.flush()
		s.noteExhaustion(h)
		s.in.sampledAt = time.Time{}
		s.noteSampling(h)
		s.noteFootprint(true)
		s.heap.live.judged = time.Time{}
		s.show(h, s.out.st.Stats())
	}
	if killed {
		s.in.over = KilledPhase
		at := max(s.in.time, s.in.now())
		s.alarms.ended(at, s.in.jvm.MaxHeap, s.noteKilled(time.Now(), at))
		if s.alarms.cause != "" {
			s.note(at, "the JVM ended without an end marker; "+s.alarms.cause)
			s.set(func(st *Status) { st.Reason = s.alarms.cause })
		}
	}
}

// recordEnd writes the END that the ring had no room for, or that the store refused: the ring's state says as much.
func (s *Session) recordEnd(h shmring.Status) {
	reason := endReasons[h.State]
	if reason == 0 || s.in.ended && !s.losses.pending() {
		return
	}
	s.out.push(trace.EncodeEnd(trace.End{Time: s.in.time, Reason: reason, Text: h.Reason}))
}
