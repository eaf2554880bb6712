package view

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/trace"
)

// SpaceAt is a space, or a region of G1, of a state: [Start, End) in words.
type SpaceAt struct {
	Start, End uint64
	Top        uint64 // end of its objects; of a region its end
	Kind       uint64 // trace.SpaceEden …
	Index      int    // of the region on G1; of the survivor space elsewhere
}

// Spaces gives the spaces by address, of those that the collection reports; spaces whose place is not recorded are left
// out.
func (v *View) Spaces(spaces []trace.Space) []SpaceAt {
	var out []SpaceAt
	if words := v.JVM.RegionWords; words > 0 {
		at, i := uint64(0), 0
		for _, run := range v.Regions {
			for n := uint64(0); n < run.Run && len(out) < 1<<20 && at < trace.MaxAddr-words; n++ {
				if run.Kind != trace.SpaceFree {
					out = append(out, SpaceAt{at, at + words, at + words, run.Kind, i})
				}
				at += words
				i++
			}
		}
		return out
	}
	survivors := 0
	for _, s := range spaces {
		if s.End > s.Bottom {
			a := SpaceAt{Start: s.Bottom, End: s.End, Top: min(s.Top, s.End), Kind: s.Kind}
			if s.Kind == trace.SpaceSurvivor {
				a.Index = survivors
				survivors++
			}
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b SpaceAt) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// MarkSpaces marks each object of the state with the kind of the space, of those of Spaces, that it is in; Fold
// tells it of those that are left after any later collection. The mark goes with the object's identity. Numbers of
// collections must be below state.MaxMarked.
func (v *View) MarkSpaces(spaces []SpaceAt) {
	s := v.State
	s.Marks |= state.SpaceMarks
	for _, k := range s.Keys(nil, 0, 1<<46) {
		c := s.Own(k, s.Chunks[k])
		s.Tidy(c)
		base := k << state.ChunkShift
		endsAbove := func(a SpaceAt, base uint64) int { return cmp.Compare(a.End, base+1) }
		at, _ := slices.BinarySearchFunc(spaces, base, endsAbove)
		for ; at < len(spaces) && spaces[at].Start < base+state.ChunkWords; at++ {
			mark := uint32(spaces[at].Kind&7) << state.SpaceShift
			if spaces[at].Start <= base && spaces[at].End >= base+state.ChunkWords && c.Birth == nil {
				c.Same |= mark
				break
			}
			c.Spread()
			for i, off := range c.Off {
				if a := base | uint64(off); a >= spaces[at].Start && a < spaces[at].End {
					c.Birth[i] |= mark
				}
			}
		}
	}
}
