// Package ramp says what is known of the objects while a listing is spread over several collections
// (docs/design/0019-rolling-sync-points.md). It is the arithmetic of both sides: Source is a probe's, which decides
// what has to be listed; Reader is that of whoever reads the recording. Neither sees an object.
//
// Terms. A *ramp* is a listing in *slices*, one a pause. An *area* is a space, or a region of G1; its *incarnation* is
// a number that changes when it is emptied. *Unknown* (U in the rules) is the set of addresses at which a reader who
// began with the ramp does not know the objects. *Uncounted* (V) is the part of it that this ramp has not counted yet:
// what was lost on the way to the recording is unknown but counted. Addresses are in words.
//
// Invariants: V is part of U. What is known is the state without U. Nothing enters V but at the start of a ramp.
//
// What it does not do: it knows no objects, no tokens and no files, and it is used by one goroutine.
package ramp

import "github.com/heapcam/heapcam/trace"

// Area is where objects of the state are: [Bottom, Top). Areas have fixed indexes in a table; one without objects of
// the state has Top = Bottom.
type Area struct{ Bottom, Top, Incarnation uint64 }

func (a Area) upTo(top uint64) trace.Range {
	return trace.Range{Start: a.Bottom, Words: top - a.Bottom}
}

// Source is what a probe keeps. A pause calls, in this order: Lost if it is behind, Evacuated for each range that it
// emptied, Finish, and Start and Listed for the slice behind its epoch. A pause whose moves are not known calls Forget
// instead of the first two.
type Source struct {
	Unknown, Uncounted Ranges
	Ramp, Slice        uint64 // number of the ramp, and of its newest slice

	committed, last []Area // at the newest finish that was committed; at the newest
	behind          bool   // epochs were lost since the newest that was committed
	follows         bool   // a ramp has begun since the newest pause whose moves are not known
}

// Behind says whether epochs were lost since the newest that was committed, and a reader can do without them: then Lost
// says how.
func (s *Source) Behind() bool { return s.behind && s.follows }

// Follows says whether a ramp has begun since the newest pause whose moves are not known.
func (s *Source) Follows() bool { return s.follows }

// Lost says what a reader has to forget before it applies the epoch in hand, if epochs before it were lost: what it
// knows in cleared has gone, and in unknown there are objects that it has not heard of. Both are empty if none was.
func (s *Source) Lost() (cleared, unknown Ranges) {
	for i, was := range s.committed {
		if i >= len(s.last) || s.last[i].Incarnation != was.Incarnation {
			cleared.Add(was.upTo(was.Top))
		}
	}
	for i, is := range s.last {
		switch {
		case i >= len(s.committed) || s.committed[i].Incarnation != is.Incarnation:
			unknown.Add(is.upTo(is.Top))
		case is.Top > s.committed[i].Top:
			unknown.Add(trace.Range{Start: s.committed[i].Top, Words: is.Top - s.committed[i].Top})
		}
	}
	for _, r := range unknown {
		s.Unknown.Add(r)
	}
	return cleared, unknown
}

// Evacuated says that the pause has emptied r: its epoch has the new place or the death of each object in r.
func (s *Source) Evacuated(r trace.Range) {
	s.Unknown.Remove(r)
	s.Uncounted.Remove(r)
}

// Finish gives the areas behind the pause, and whether its epoch was committed.
func (s *Source) Finish(areas []Area, committed bool) {
	s.last, s.behind = areas, !committed
	if committed {
		s.committed = areas
	}
}

// Forget says that the moves of the pause are not known: there is no ramp, and nothing is known until the next begins.
func (s *Source) Forget() { s.Unknown, s.Uncounted, s.follows = nil, nil, false }

// Start begins a ramp behind the newest finish: all that the areas hold now is unknown. What they gain later comes with
// births and moves, so their tops are frozen here.
func (s *Source) Start() {
	s.Ramp, s.Slice, s.follows = s.Ramp+1, 0, true
	s.Unknown = nil
	for _, a := range s.last {
		s.Unknown.Add(a.upTo(a.Top))
	}
	s.Uncounted = s.Unknown.Clone()
}

// Listed says that the slice in hand lists r.
func (s *Source) Listed(r trace.Range) { s.Evacuated(r) }

// Reader is what a reader keeps beside the objects that it knows. A pause calls Lost, if its epoch says that one was
// lost, Evacuated for each emptied range, and Slice with what follows. Forget is for anything that ends the knowledge.
type Reader struct {
	Unknown Ranges
	ramp    uint64 // that it began with and whose last slice has not come; 0: none
	follows bool   // what is outside of Unknown is known
}

// Follows says whether the state outside of Unknown is known.
func (r *Reader) Follows() bool { return r.follows }

// Complete says that the whole state is known.
func (r *Reader) Complete() bool { return r.follows && r.ramp == 0 && len(r.Unknown) == 0 }

// Forget says that nothing is known any more.
func (r *Reader) Forget() { *r = Reader{} }

// Know says that the whole state is known: of a listing in one piece.
func (r *Reader) Know() { *r = Reader{follows: true} }

// Evacuated says that a range was emptied: what was there has a known place, or has died.
func (r *Reader) Evacuated(x trace.Range) {
	if len(r.Unknown) > 0 {
		r.Unknown.Remove(x)
	}
}

// Lost applies what an epoch says of those that were lost before it.
func (r *Reader) Lost(l *trace.Lost) {
	for _, x := range l.Cleared {
		r.Unknown.Remove(x)
	}
	for _, x := range l.Unknown {
		r.Unknown.Add(x)
	}
	if len(r.Unknown) > maxUnknown {
		r.Forget()
	}
}

// maxUnknown bounds the stretches that a reader keeps apart: more than any heap has, and few enough to work with.
const maxUnknown = 2 * trace.MaxRanges

// Slice takes in a slice, whose ranges are known then. fresh: it is the first thing that this reader knows. agrees: it
// says of the words that are left what the reader says.
func (r *Reader) Slice(s *trace.Slice) (fresh, agrees bool) {
	if s.First() && !r.follows {
		fresh = true
		*r = Reader{Unknown: Of(s.Pending), ramp: s.Ramp, follows: true}
	}
	if !r.follows {
		return false, true
	}
	for _, x := range s.Listed {
		r.Unknown.Remove(x)
	}
	// One that has begun with the ramp knows as much as the probe thinks; one that knew more before it still does.
	agrees = r.ramp != s.Ramp || r.Unknown.Words() == s.Left
	if s.Last() {
		agrees = agrees && len(r.Unknown) == 0
		r.ramp, r.Unknown = 0, nil
	}
	return fresh, agrees
}
