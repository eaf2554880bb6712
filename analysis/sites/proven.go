package sites

import (
	"io"
	"math/bits"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// names are the definitions of a replay as coverage.Proofs needs them.
type names struct{ *heap.Symbols }

func (n names) Type(id uint64) (t trace.Type, ok bool)     { t, ok = n.Types[id]; return t, ok }
func (n names) Method(id uint64) (m trace.Method, ok bool) { m, ok = n.Methods[id]; return m, ok }
func (n names) Frame(id uint64) (f trace.Frame, ok bool)   { f, ok = n.Frames[id]; return f, ok }
func (n names) CandidatesOf(typ uint64) []trace.Candidate  { return n.Candidates[typ] }
func (n names) Rounds() []trace.Scanned                    { return n.Scans }

// FromFew is what is proven of a type: so many of its objects, without those that were sampled, come from one of these
// bytecodes.
type FromFew struct {
	heap.Count
	Places []StackFrame
}

// placesOf gives candidates as frames.
func placesOf(s *heap.Symbols, from []trace.Candidate) (out []StackFrame) {
	for _, c := range from {
		out = append(out, frameOf(s.Methods[c.Method], int64(c.BCI)))
	}
	return out
}

// FromFew gives what one of few bytecodes has made of a type, after the newest call of Quality.
func (f *CoverageFollower) FromFew(s *heap.Symbols, typ uint32) FromFew {
	n, from := f.Recording.FromFew(typ)
	return FromFew{heap.Count(n), placesOf(s, from)}
}

// fromFew gives what is proven of each class: types of one class with the same places are one.
func (s *State) fromFew() map[Class][]FromFew {
	out := map[Class][]FromFew{}
	if s.FromFew == nil {
		return out
	}
	for id, n := range s.Types {
		if n.Objects == 0 {
			continue
		}
		f := s.FromFew(uint32(id))
		if f.Objects == 0 {
			continue
		}
		c := ClassOf(s.Symbols, uint32(id)).Folded()
		i := slices.IndexFunc(out[c], func(x FromFew) bool { return JoinStack(x.Places) == JoinStack(f.Places) })
		if i < 0 {
			out[c] = append(out[c], f)
			continue
		}
		x := &out[c][i]
		x.Objects, x.Bytes = x.Objects+f.Objects, x.Bytes+f.Bytes
	}
	return out
}

// restRow is a row of a class without a site. fresh is what of the class has no sample and is not older than the
// recording: what the row has, and what samples stand for.
type restRow struct {
	Row
	class Class
	fresh heap.Count
}

// split takes what is proven out of a row, and gives a row for each of the places, or lists of places. Samples stand
// for objects that are proven and for others alike.
func (r *restRow) split(few []FromFew) (out []Row) {
	objects := portion{r.Objects, r.ObjectsLow, r.ObjectsHigh, r.fresh.Objects, 0}
	bytes := portion{r.Bytes, r.BytesLow, r.BytesHigh, r.fresh.Bytes, 0}
	for _, f := range few {
		x := Row{Class: r.Class, Loader: r.Loader, Child: SiteFew, Site: []StackFrame{}, Candidates: f.Places}
		if len(f.Places) == 1 {
			x.Child, x.Site, x.Candidates, x.Proven = "", f.Places, nil, true
			x.SiteID = ID(x.Class, x.Site)
		}
		x.Objects, x.ObjectsLow, x.ObjectsHigh = objects.take(f.Objects)
		x.Bytes, x.BytesLow, x.BytesHigh = bytes.take(f.Bytes)
		if x.Objects > 0 || x.Bytes > 0 {
			r.Objects, r.Bytes = r.Objects-x.Objects, r.Bytes-x.Bytes
			out = append(out, x)
		}
	}
	r.ObjectsLow, r.ObjectsHigh = objects.rest(r.Objects)
	r.BytesLow, r.BytesHigh = bytes.rest(r.Bytes)
	return out
}

// splitAll splits all rows into those that are proven and those without a site.
func splitAll(rest []restRow, few map[Class][]FromFew) (proven, none []Row) {
	for i := range rest {
		if rest[i].Child == SiteUnknown {
			for _, r := range rest[i].split(few[rest[i].class]) {
				if r.Proven {
					proven = append(proven, r)
				} else {
					none = append(none, r)
				}
			}
		}
		none = append(none, rest[i].Row)
	}
	return proven, none
}

// portion is a figure with its bounds, of which parts are taken: it counts for fresh, of which taken are proven.
type portion struct{ n, low, high, fresh, taken uint64 }

// take gives the part of the figure that is of some of fresh, and its bounds: all others, or none of them, may be in
// the rest.
func (p *portion) take(some uint64) (n, low, high uint64) {
	if some = min(some, p.fresh-p.taken); some == 0 {
		return 0, 0, 0
	}
	p.taken += some
	h, l := bits.Mul64(min(p.n, p.fresh), some)
	n, _ = bits.Div64(h, l, p.fresh)
	others := p.fresh - some
	return n, min(n, p.low-min(p.low, others)), max(n, min(p.high, some))
}

// rest gives the bounds of what is left, n.
func (p *portion) rest(n uint64) (low, high uint64) {
	return min(n, p.low-min(p.low, p.taken)), max(n, min(p.high, p.fresh-min(p.fresh, p.taken)))
}

// WriteFew prints what is known of the site of a row that no sample has.
func (r *Row) WriteFew(w io.Writer) {
	if r.Proven {
		ui.Fprintf(w, "       proven; callers unknown\n")
	}
	if r.Drawn > 0 {
		ui.Fprintf(w, "       innermost frame exact of %d; their callers as in samples that end there\n", r.Drawn)
	}
	for _, f := range r.Candidates {
		ui.Beside(w, "       at or ", ui.Sprintf("%s", f))
	}
}
