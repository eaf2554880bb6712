package session

import (
	"testing"

	"github.com/heapcam/heapcam/agent/session/sessiontest"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// endsOf gives the reasons of the ENDs in a file.
func endsOf(t *testing.T, file []byte) (out []uint64) {
	t.Helper()
	for b, err := range trace.Blocks(file) {
		if err != nil {
			t.Fatal(err)
		}
		if b.Kind != trace.KindEnd {
			continue
		}
		e, err := trace.DecodeEnd(b)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Reason)
	}
	return out
}

// TestEndWithoutRoom: a JVM that ended in order while its ring was full, or the disk, has an END in the recording.
func TestEndWithoutRoom(t *testing.T) {
	for name, full := range map[string]bool{"ring": false, "disk": true} {
		mem := &sessiontest.MemStore{Limit: 1 << 30}
		r := newRig(t, mem)
		r.play(tracetest.New(tracetest.Config{Seed: 7}), 5)
		r.drained()
		if full {
			mem.Refuse(1)
			r.p.End(shmring.StateGoodbye, "")
		} else {
			r.p.State(shmring.StateGoodbye, "")
		}
		r.finish()
		if st := r.s.Status(); st.Phase != EndedPhase {
			t.Errorf("%s: phase %s", name, st.Phase)
		}
		if got := endsOf(t, mem.Files()[0]); len(got) != 1 || got[0] != trace.EndDeath {
			t.Errorf("%s: ends %d", name, got)
		}
	}
}

// TestEndSeenLate: the ring says that the JVM ended in order, though its process was found gone before.
func TestEndSeenLate(t *testing.T) {
	for state, want := range map[shmring.State]Phase{
		shmring.StateGoodbye: EndedPhase, shmring.StateRecording: KilledPhase,
	} {
		r := newRigLater(t, &sessiontest.MemStore{Limit: 1 << 30}, &Limits{SamplingShare: -1})
		r.open()
		r.p.State(state, "")
		r.s.finish(true)
		if r.s.in.over != want {
			t.Errorf("%s: %s, want %s", state, r.s.in.over, want)
		}
		r.s.Close()
	}
}
