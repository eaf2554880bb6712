package heap

import (
	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/view"
	"github.com/heapcam/heapcam/trace"
)

// Replay reads a recording and follows each object. Make one with NewReplay, or continue from a Snapshot.
type Replay struct {
	Cursor
	State    *State
	Compared []Comparison // what sync points said of the state, if it was known

	evacuation state.Evacuation
	from       *view.View // of a replay that continues from a snapshot: what it began with
}

// NewReplay begins at the start of src.
func NewReplay(src BlockSource) *Replay {
	r := &Replay{}
	r.Cursor = newCursor(src, r)
	r.set(state.New())
	return r
}

func (r *Replay) set(s *State) { r.State, r.Totals = s, s }

// View gives the heap after the newest collection, until the next call of Next.
func (r *Replay) View() *View {
	v := r.Cursor.View()
	if r.from != nil {
		v.Share(r.from)
	}
	v.State, v.Counts = r.State, &r.State.Counts
	return v
}

func (r *Replay) apply(e *trace.Epoch) error { return r.State.Evacuate(e, r.Sizes(), &r.evacuation) }

func (r *Replay) resolve(addr, id, birth uint64) bool { return r.State.SetSample(addr, id, birth) }

// list compares the listing with the state, if that was known, and replaces it.
func (r *Replay) list(s *trace.Sync) (attach, error) {
	if len(s.Lists) == 0 {
		return r.attach, nil
	}
	old, m := r.State, &r.matcher
	next, err := old.Listing(s, r.Sizes(), r.JVM.Flags&trace.JVMAtStart == 0 || s.GC > 1)
	if err != nil {
		return nil, err
	}
	switch c := r.pending; {
	case r.Known:
		r.Compared = append(r.Compared, m.Compare(s, old, next))
	case r.beforePause && c != nil:
		c.Listed = uint64(next.Objects())
		c.Proven = m.Identify(s, &c.Pause, old, next)
	}
	r.set(next)
	return r.attach, nil
}

// attach puts a sample on what is at its address, and gives it the type of that if it has none; false if nothing is
// there.
func (r *Replay) attach(l *trace.LiveSample, x *Sample) bool {
	here := r.State.SetSample(l.Addr, l.ID, x.Birth)
	if here && x.Type == 0 {
		t, _ := r.State.TypeAt(l.Addr)
		x.Type = uint64(t)
	}
	return here
}
