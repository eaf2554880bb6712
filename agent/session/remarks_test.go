package session

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
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
	got, _, err := trace.ReadBlock(s.out.pending)
	if err != nil {
		t.Fatal(err)
	}
	back, err := trace.DecodeMeta(got)
	if err != nil || len(back.Notes) != 1 || back.Sampling != nil || back.Exhausted != nil {
		t.Errorf("stored %+v, %v", back, err)
	}
}

// TestStormIsTold: the recording has the storm's figures, behind the collection that began it.
func TestStormIsTold(t *testing.T) {
	froze := ""
	s := &Session{hooks: Hooks{Freeze: func(why string) { froze = why }}}
	for i := uint64(1); i < 10; i++ {
		p := trace.Pause{Kind: trace.PauseFull, Start: i * 13e9, Dur: 12e9}
		if s.alarms.storm.pause(&p) {
			s.stormBegins(p.Start + p.Dur)
		}
	}
	b, n, err := trace.ReadBlock(s.out.pending)
	if err != nil || n != len(s.out.pending) {
		t.Fatalf("%d of %d bytes: %v", n, len(s.out.pending), err)
	}
	m, err := trace.DecodeMeta(b)
	if want := (trace.Storm{Time: 51e9, Span: 51e9, Collections: 3, NS: 36e9}); err != nil || len(m.Storms) != 1 ||
		m.Storms[0] != want || froze != want.String() {
		t.Errorf("told %+v, %v; frozen: %q", m.Storms, err, froze)
	}
}
