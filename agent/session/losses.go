package session

import (
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

const (
	// refusedEvery is the least time between two log lines about refused writes; status has the counts.
	refusedEvery = 10 * time.Second
	// maxLoss bounds a difference of counters that is believed: they are the producer's word.
	maxLoss = 1 << 40
)

// losses counts what the shared ring or the store lost, and says which GAPs report it.
type losses struct {
	gap       trace.Gap      // what the store refused since it took something; Reason 0: nothing
	reported  shmring.Status // the ring's loss counters as reported last
	lastGC    uint64         // number of the newest epoch, 0 while unknown: numbers that are missing were lost
	refusedAt time.Time      // when the log had a refusal last
}

// pending says whether a GAP is to be written before what the store takes next.
func (l *losses) pending() bool { return l.gap.Reason != 0 }

// stored says that the store took the GAP.
func (l *losses) stored() { l.gap = trace.Gap{} }

// refuse counts epochs that the store refused at the stream's time at, and says whether that is to be logged.
func (l *losses) refuse(epochs, at uint64, now time.Time) (log bool) {
	if l.gap.Reason == 0 && now.Sub(l.refusedAt) > refusedEvery {
		l.refusedAt, log = now, true
	}
	l.gap.Reason = trace.GapStore
	l.gap.Epochs += epochs
	l.gap.Time = at
	return log
}

// before returns the GAPs that stand before the epoch gc, h being the ring's status behind its batch. Numbers that are
// missing say how many epochs were lost and where, also while no agent ran; the ring's own counter is ahead of what is
// being read.
func (l *losses) before(gc uint64, h shmring.Status, at uint64) []trace.Gap {
	n := uint64(0)
	if l.lastGC != 0 && gc > l.lastGC+1 {
		n = gc - l.lastGC - 1
	}
	if gc != 0 {
		l.lastGC = gc
	}
	return l.gaps(n, h, at)
}

// atEnd returns the GAPs behind the last epoch. The probe counts pauses before it records them, so this also counts
// one that waited for room, or was being written, when the JVM ended. The counter of what was dropped may have been
// used up by a hole that was read after these were dropped; it holds where no epoch was seen.
func (l *losses) atEnd(h shmring.Status, at uint64) []trace.Gap {
	if left := h.Epochs - l.lastGC; l.lastGC != 0 && left < maxLoss {
		return l.gaps(left, h, at)
	}
	return l.gaps(h.EpochsDropped-l.reported.EpochsDropped, h, at)
}

// gaps reports the loss of so many epochs, and of samples.
func (l *losses) gaps(epochs uint64, h shmring.Status, at uint64) (out []trace.Gap) {
	if epochs != 0 && epochs < maxLoss {
		out = append(out, trace.Gap{Reason: trace.GapOverflow, Epochs: epochs, Time: at})
		// What was lost before this agent started is not in the difference of the counters.
		l.reported.EpochsDropped = min(l.reported.EpochsDropped+epochs, h.EpochsDropped)
	}
	if n := h.SamplesDropped - l.reported.SamplesDropped; n != 0 && n < maxLoss {
		out = append(out, trace.Gap{Reason: trace.GapSamples, Samples: n, Time: at})
		l.reported.SamplesDropped = h.SamplesDropped
	}
	return out
}
