package session

import (
	"slices"
	"testing"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// TestLosses: each lost epoch and sample is reported once: by the numbers that are missing, at the end by the counter.
func TestLosses(t *testing.T) {
	var l losses
	const at = 77
	expect := func(what string, got []trace.Gap, want ...trace.Gap) {
		t.Helper()
		for i := range want {
			want[i].Time = at
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	epochs := func(n uint64) trace.Gap { return trace.Gap{Reason: trace.GapOverflow, Epochs: n} }
	samples := func(n uint64) trace.Gap { return trace.Gap{Reason: trace.GapSamples, Samples: n} }
	expect("the first epoch", l.before(7, shmring.Status{}, at))
	expect("the next", l.before(8, shmring.Status{}, at))
	// The counter is ahead of what is being read.
	h := shmring.Status{EpochsDropped: 5, SamplesDropped: 3}
	expect("two are missing", l.before(11, h, at), epochs(2), samples(3))
	expect("none is missing", l.before(12, h, at))
	expect("three more, no other has followed", l.atEnd(h, at), epochs(3))
	expect("all are reported", l.atEnd(h, at))
	expect("counters that run backwards", l.atEnd(shmring.Status{EpochsDropped: 1, SamplesDropped: 1}, at))
}

// TestLossesBeforeTheAgent: epochs that were lost while no agent ran are missing in the numbers alone; they do not hide
// what the counter says afterwards.
func TestLossesBeforeTheAgent(t *testing.T) {
	l := losses{lastGC: 3, reported: shmring.Status{EpochsDropped: 4}}
	h := shmring.Status{EpochsDropped: 4}
	if g := l.before(8, h, 1); len(g) != 1 || g[0].Epochs != 4 {
		t.Errorf("%+v", g)
	}
	h.EpochsDropped = 6
	if g := l.atEnd(h, 1); len(g) != 1 || g[0].Epochs != 2 {
		t.Errorf("%+v", g)
	}
}

// TestRefusals: refusals add up to one GAP until the store takes something, and fill no log.
func TestRefusals(t *testing.T) {
	var l losses
	now := time.Unix(1e9, 0)
	logged := 0
	for i := range 100 {
		if l.refuse(2, uint64(i), now.Add(time.Duration(i)*10*time.Millisecond)) {
			logged++
		}
	}
	want := trace.Gap{Reason: trace.GapStore, Epochs: 200, Time: 99}
	if l.gap != want || !l.pending() || logged != 1 {
		t.Errorf("%+v, logged %d times", l.gap, logged)
	}
	l.stored()
	if l.pending() || l.refuse(1, 1, now.Add(2*time.Second)) || !l.pending() {
		t.Error("still pending, logged again within ten seconds, or not counted")
	}
	l.stored()
	if !l.refuse(1, 1, now.Add(time.Minute)) {
		t.Error("not logged after a minute")
	}
}
