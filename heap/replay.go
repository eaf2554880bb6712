package heap

import (
	"slices"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/view"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/ramp"
)

// Replay reads a recording and follows each object. Make one with NewReplay, or continue from a Snapshot.
type Replay struct {
	Cursor
	State    *State
	Compared []Comparison // what sync points said of the state, if it was known

	evacuation state.Evacuation
	listed     ramp.Reader // where the objects are not known, while a listing in slices is under way
	told       told
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

func (r *Replay) apply(e *trace.Epoch) error {
	r.evacuation.Emptied = nil
	if len(r.listed.Unknown) > 0 {
		r.evacuation.Emptied = r.listed.Evacuated
	}
	return r.State.Evacuate(e, r.Sizes(), &r.evacuation)
}

func (r *Replay) lose(l *trace.Lost) bool {
	r.State.Cut(l.Cleared)
	r.State.Cut(l.Unknown)
	r.listed.Lost(l)
	return r.listed.Follows()
}

func (r *Replay) known() (all bool, unlisted uint64) {
	return r.listed.Complete(), 8 * r.listed.Unknown.Words()
}

func (r *Replay) forget() { r.listed.Forget() }

// slice compares what a slice lists with what is known there, and puts it in its place.
func (r *Replay) slice(s *trace.Slice) (follows bool, find attach, err error) {
	before := r.listed.Unknown.Clone()
	fresh, agrees := r.listed.Slice(s)
	if !r.listed.Follows() {
		return false, nil, nil
	}
	if fresh {
		r.loseSites(s.GC)
		r.set(state.New())
		before = ramp.Of(s.Pending)
	}
	if !agrees {
		r.fault("slice %d of ramp %d at collection %d: %d words are left, it says %d", s.N, s.Ramp, s.GC,
			r.listed.Unknown.Words(), s.Left)
	}
	birth := uint32(s.GC)
	if r.JVM.Flags&trace.JVMAtStart == 0 || s.GC > 1 {
		birth |= state.AtLeastMark
	}
	old := r.State.Cut(s.Listed)
	part, bytes, err := r.State.Part(append(slices.Clip(s.Lists), s.Again...), r.Sizes(), birth)
	if err != nil {
		r.listed.Forget()
		return false, nil, err
	}
	if n := uint64(part.Objects()); n != s.Objects || bytes != s.Bytes {
		r.fault("slice %d of ramp %d at collection %d: total says %d objects, %d bytes; listed are %d, %d", s.N, s.Ramp,
			s.GC, s.Objects, s.Bytes, n, bytes)
	}
	samples := old.Sampled()
	// What was unknown is new: it is compared with nothing.
	added := part.Split(before)
	if len(s.Listed) > 0 && (old.Objects() > 0 || part.Objects() > 0) {
		sync := trace.Sync{GC: s.GC, Reason: s.Reason, Spaces: s.Spaces, Regions: s.Regions}
		c := r.matcher.Compare(&sync, old, part)
		r.Compared = append(r.Compared, c)
	}
	r.State.Join(part, samples)
	r.State.Join(added, nil)
	return true, r.attach, nil
}

// resolve also says yes where nothing is listed yet: an epoch that had to wait for room names its samples in a later
// one.
func (r *Replay) resolve(addr, id, birth uint64) bool {
	return r.State.SetSample(addr, id, birth) || r.listed.Unknown.Has(addr)
}

// list compares the listing with the state, if that was known, and replaces it.
func (r *Replay) list(s *trace.Sync) (attach, error) {
	if len(s.Lists) == 0 { // what State still holds is of an earlier time: another object may stand there now
		return func(*trace.LiveSample, *Sample) bool { return true }, nil
	}
	old, m := r.State, &r.matcher
	next, err := old.Listing(s, r.Sizes(), r.JVM.Flags&trace.JVMAtStart == 0 || s.GC > 1)
	if err != nil {
		return nil, err
	}
	switch {
	case !r.Known:
		r.loseSites(s.GC)
	case r.HasSited():
		old.EachMark(func(addr, id uint64) { keepSite(old, next, addr, id) })
	}
	switch c := r.pending; {
	case r.Known:
		r.Compared = append(r.Compared, m.Compare(s, old, next))
	case r.beforePause && c != nil:
		c.Listed = uint64(next.Objects())
		c.Proven = m.Identify(s, &c.Pause, old, next)
	}
	r.set(next)
	r.listed.Know()
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
