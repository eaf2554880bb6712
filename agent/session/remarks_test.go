package session

import (
	"testing"
	"time"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestRemarksOfAProbe: what a probe says of the agent's matters, in a note of before or in an event, is not taken over;
// its notes for people are.
func TestRemarksOfAProbe(t *testing.T) {
	sent := trace.Meta{
		Notes:     []trace.Note{{Time: 1, Text: "sampling is unavailable"}},
		Sampling:  []trace.Sampling{{Time: 1, NS: 1}},
		Exhausted: []trace.Exhausted{{Time: 1}},
	}
	b := trace.EncodeMeta(sent)
	b.Seq = 7
	m, err := trace.DecodeMeta(b)
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{}
	s.out.open = true
	s.meta(m)
	got, _, err := trace.ReadBlock(s.out.own)
	if err != nil {
		t.Fatal(err)
	}
	back, err := trace.DecodeMeta(got)
	if err != nil || len(back.Notes) != 1 || back.Sampling != nil || back.Exhausted != nil {
		t.Errorf("stored %+v, %v", back, err)
	}
}

// TestStormIsReported: the recording has the storm's figures, behind the collection that began it.
func TestStormIsReported(t *testing.T) {
	froze, cause := "", ringstore.Cause("")
	s := &Session{}
	s.hooks.Freeze = func(c ringstore.Cause, why string, _ ringstore.Listed) { froze, cause = why, c }
	for i := uint64(1); i < 10; i++ {
		p := trace.Pause{Kind: trace.PauseFull, Start: i * 13e9, Dur: 12e9}
		if s.alarms.storm.pause(&p) {
			s.stormBegins(p.Start+p.Dur, &shmring.Status{})
		}
	}
	if froze != "" {
		t.Error("the storm did not wait for an allocation that fails")
	}
	s.freezeWaiting(time.Now().Add(listingTime), false)
	b, n, err := trace.ReadBlock(s.out.own)
	if err != nil || n != len(s.out.own) {
		t.Fatalf("%d of %d bytes: %v", n, len(s.out.own), err)
	}
	m, err := trace.DecodeMeta(b)
	if want := (trace.Storm{Time: 51e9, Span: 51e9, Collections: 3, NS: 36e9}); err != nil || len(m.Storms) != 1 ||
		m.Storms[0] != want || froze != want.String() || cause != ringstore.CauseStorm {
		t.Errorf("recorded %+v, %v; frozen: %q", m.Storms, err, froze)
	}
}

// TestForgedCounters: whatever a JVM writes into its ring and its pauses, what the agent adds can be read.
func TestForgedCounters(t *testing.T) {
	mem := &sessiontest.MemStore{}
	r := newRig(t, mem)
	const most = 1<<64 - 1
	for _, off := range []int{shmring.OffSampleNS, shmring.OffSitesCut, shmring.OffExhausted} {
		r.p.Poke64(off, most)
	}
	m := tracetest.New(tracetest.Config{Seed: 5})
	r.play(m, 3)
	late := trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 9, Kind: trace.PauseFull, Depth: trace.DepthSamples,
		Start: trace.MaxTime, Dur: trace.MaxTime}})
	late.Seq = 1 << 20
	r.commit([]trace.Block{late, m.End()})
	if err := r.p.State(shmring.StateGoodbye, ""); err != nil {
		t.Fatal(err)
	}
	r.finish()
	remarks := 0
	for i, f := range mem.Files() {
		for b, err := range trace.Blocks(f) {
			if err != nil {
				t.Fatal(err)
			}
			switch b.Kind {
			case trace.KindMeta:
				x, err := trace.DecodeMeta(b)
				if err != nil {
					t.Errorf("file %d: %v", i, err)
				}
				remarks += len(x.Sampling) + len(x.SitesCut) + len(x.Exhausted)
			case trace.KindGap:
				if _, err := trace.DecodeGap(b); err != nil {
					t.Errorf("file %d: %v", i, err)
				}
			}
		}
	}
	if remarks < 3 {
		t.Errorf("%d remarks", remarks)
	}
}
