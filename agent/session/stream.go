package session

import (
	"slices"
	"time"

	"github.com/heapcam/heapcam/trace"
)

const (
	// maxNotes bounds the notes that are repeated in each file, maxNote the bytes of each.
	maxNotes = 32
	maxNote  = 4 << 10
)

// stream is what the JVM's stream has said so far.
type stream struct {
	jvm   trace.JVM
	known bool // jvm is
	notes []trace.Note
	whose trace.Resource // nil: not known
	base  trace.Resource // whose without what the process says
	said  trace.Resource // that, as it came last; nil: nothing
	named int            // how often it has changed
	depth uint64         // of the last epoch
	time  uint64         // newest of the stream, ns since the probe began

	redefining  bool   // the probe is asked to send all definitions again
	redefinedAt uint64 // position before which it has done so; 0: unknown, or taken note of

	began      time.Time // this session
	pauseAt    time.Time // when the newest epoch was taken in; zero: none was by this agent
	stormUntil uint64    // ns; until then it is not noted again that listings are left out

	sampledAt time.Time // when the cost of sampling was noted last
	ended     bool      // the probe's END was read
	over      Phase     // what the session will be when all is stored, "": what status says

	footprintAt time.Time // when the memory of the JVM's process was noted last
}

// learn takes in a META. It returns the notes that are new, and whether the JVM was described before, otherwise.
func (in *stream) learn(m trace.Meta) (fresh []trace.Note, changed bool) {
	if m.HasJVM {
		changed = in.known && m.JVM.Flags != in.jvm.Flags
		in.jvm, in.known, in.depth = m.JVM, true, m.JVM.Depth
	}
	before := len(in.notes)
	for _, n := range m.Notes {
		n.Text = n.Text[:min(len(n.Text), maxNote)]
		if len(in.notes) < maxNotes && !slices.Contains(in.notes, n) {
			in.notes = append(in.notes, n)
		}
	}
	return in.notes[before:], changed
}

// now returns the time of the stream: ns since the probe began, 0 while nothing is known of the JVM.
func (in *stream) now() uint64 {
	if !in.known || in.jvm.T0WallMS == 0 {
		return 0
	}
	return uint64(max(time.Since(time.UnixMilli(int64(in.jvm.T0WallMS))), 0))
}
