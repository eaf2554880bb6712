package heap

import (
	"io"
	"iter"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/view"
	"github.com/heapcam/heapcam/trace"
)

// AnySnapshot is a Snapshot or a CountSnapshot.
type AnySnapshot interface {
	// At gives the collection.
	At() *Collection
	// View gives what is known of the heap after it. lives are the samples of the recording; names may be newer than
	// the collection.
	View(names *Names, lives *Lives) *View
}

// CountSnapshot is how many objects of each type and length there were after a collection. It is only read.
type CountSnapshot struct {
	C *Collection
	// New is what it takes, in bytes, roughly.
	New    int
	frozen *view.Frozen
}

// Snapshot is the state after a collection, with all objects. It is only read.
type Snapshot struct {
	C *Collection
	// New is what it takes beside what the snapshot before takes, in bytes, roughly.
	New    int
	frozen *view.Frozen
	cursor Cursor // where it was taken, without what all snapshots share and what only the replay needs
}

// Snapshot keeps the state after c, the newest collection, whose state is known. What the replay does from then on does
// not change it. before is the snapshot before it, or nil.
func (r *Replay) Snapshot(c *Collection, before *Snapshot) *Snapshot {
	var had *view.Frozen
	if before != nil {
		had = before.frozen
	}
	s := &Snapshot{C: c, cursor: r.Cursor}
	s.frozen, s.New = r.View().Freeze(had)
	s.cursor.Symbols, s.cursor.Totals, s.cursor.Ends = nil, nil, nil
	s.cursor.blocks, s.cursor.model, s.cursor.pending = blockReader{}, nil, nil
	s.cursor.Samples = &Samples{Taken: r.Taken}
	s.cursor.Findings = Findings{Uncompacted: r.Uncompacted}
	s.cursor.OnListing, s.cursor.OnSummary, s.cursor.OnTold = nil, nil, nil
	return s
}

// Count keeps the counts of the state after c, the newest collection, whose state is known. places, if it is not nil,
// has been given each known collection: then the counts can be folded by sites (Sites), unless a live sample is not
// where it should be.
func (r *Replay) Count(c *Collection, places *Places) *CountSnapshot {
	s := &CountSnapshot{C: c}
	s.frozen, s.New = r.View().FreezeCounts(places)
	return s
}

// Names gives the definitions that are known so far; what is read from then on does not change them.
func (r *Replay) Names() *Names { return r.View().Names() }

// At is AnySnapshot.At.
func (s *Snapshot) At() *Collection { return s.C }

// At is AnySnapshot.At.
func (s *CountSnapshot) At() *Collection { return s.C }

// View is AnySnapshot.View.
func (s *Snapshot) View(names *Names, lives *Lives) *View { return s.frozen.View(names, lives) }

// View is AnySnapshot.View.
func (s *CountSnapshot) View(names *Names, lives *Lives) *View { return s.frozen.View(names, lives) }

// Sites says whether the counts can be folded by sites.
func (s *CountSnapshot) Sites() bool { return s.frozen.Sites() }

// Held is what all of kept take together, in bytes, roughly.
func Held(kept []*Snapshot) int {
	return view.Held(frozenOf(kept, func(s *Snapshot) *view.Frozen { return s.frozen }))
}

// HeldCounts is Held of counts.
func HeldCounts(kept []*CountSnapshot) int {
	return view.Held(frozenOf(kept, func(s *CountSnapshot) *view.Frozen { return s.frozen }))
}

func frozenOf[T any](kept []T, of func(T) *view.Frozen) iter.Seq[*view.Frozen] {
	return func(yield func(*view.Frozen) bool) {
		for _, s := range kept {
			if !yield(of(s)) {
				return
			}
		}
	}
}

// Resume continues from the snapshot: src gives the blocks of the recording from any point not after the collection,
// and what is known already is left out. names are the replay's own then. The collection must have emptied eden: else
// its samples wait for the next one.
func (s *Snapshot) Resume(names *Names, lives *Lives, src BlockSource) *Replay {
	r := &Replay{Cursor: s.cursor, from: s.frozen.View(names, nil)}
	known, err := names.Symbols.Continue()
	r.Symbols, r.Ends = known, names.Ends
	r.Samples = samples.Resume(lives.Live(s.C.GC), s.cursor.Taken)
	r.matcher.Symbols = known
	r.blocks, r.model = blockReader{src: &after{src: src, gc: s.C.GC}}, r
	r.listed.Know()
	state := r.from.State
	state.Continue()
	r.set(state)
	if err != nil {
		r.fault("%v", err)
	}
	return r
}

// after leaves out what a replay that continues from a collection has had: all up to the epoch and sync point of that,
// but for definitions.
type after struct {
	src  BlockSource
	gc   uint64
	at   bool // the epoch of the collection has come
	past bool // something after it has
}

func (a *after) Next() (trace.Block, error) {
	for {
		b, err := a.src.Next()
		if a.past || err == io.EOF {
			return b, err
		}
		if err != nil {
			continue // the first reader has reported damage before the collection
		}
		switch b.Kind {
		case trace.KindEpoch:
			e, err := trace.DecodeEpoch(b)
			if err == nil && e.Pause.GC <= a.gc {
				a.at = e.Pause.GC == a.gc
				continue
			}
			a.past = true
		case trace.KindSync: // one of a later collection stands for a lost epoch
			s, err := trace.DecodeSync(b)
			if err == nil && s.GC <= a.gc {
				continue
			}
			a.past = true
		case trace.KindSlice:
			s, err := trace.DecodeSlice(b)
			if err == nil && s.GC <= a.gc {
				continue
			}
			a.past = true
		case trace.KindSamples, trace.KindGap:
			if !a.at {
				continue
			}
		}
		return b, nil
	}
}
