package view

import (
	"iter"
	"maps"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/symbols"
)

// Frozen is what a view was when it was frozen, without names and samples, which all views of a recording share. It is
// only read.
type Frozen struct {
	view  View
	pages map[uint64]*page
}

// Names are the definitions of a recording and the times of its collections, as far as it has been read.
type Names struct {
	Symbols *symbols.Table
	Ends    map[uint64]uint64
}

// Names gives what is known so far; what is read from then on does not change it.
func (v *View) Names() *Names { return &Names{Symbols: v.Symbols.Clone(), Ends: maps.Clone(v.Ends)} }

// Freeze keeps the view with all its objects; what happens to its state from then on does not change that. before is
// what was frozen before it, or nil. size is what the new one takes beside what was frozen before, in bytes, roughly.
func (v *View) Freeze(before *Frozen) (f *Frozen, size int) {
	f = &Frozen{view: v.bare()}
	kept, size := v.State.Share()
	var had map[uint64]*page
	if before != nil {
		had = before.pages
	}
	fresh := 0
	f.pages, fresh = paged(v.State, had, uint32(v.First))
	f.view.State = kept
	f.view.Counts = &kept.Counts
	return f, size + f.beside() + fresh
}

// FreezeCounts keeps how many objects of each type and length the view has. places, if it is not nil, must see each
// known collection of the recording: then the counts can be folded by sites (Sites), unless a live sample is not where
// it should be.
func (v *View) FreezeCounts(places *Places) (f *Frozen, size int) {
	f = &Frozen{view: v.bare()}
	known := places != nil && places.follow(v)
	f.view.Counts = v.State.Summary()
	if known {
		f.view.born = make([]bornCount, 0, len(places.born))
		for at, n := range places.born {
			f.view.born = append(f.view.born, bornCount{at, n})
		}
	}
	return f, f.beside()
}

// bare is the view without what all views of the recording share.
func (v *View) bare() View {
	return View{GC: v.GC, First: v.First, Regions: v.Regions, Uncompacted: v.Uncompacted,
		Relisted: v.Relisted}
}

// Sites says whether counts can be folded by sites.
func (f *Frozen) Sites() bool { return f.view.born != nil }

// beside is roughly what a frozen view takes beside its chunks and the pages that are its own.
func (f *Frozen) beside() int {
	return 8*len(f.view.Counts.Codes.Count) + 24*(len(f.pages)+len(f.view.born))
}

// View gives a view to look at. lives are the samples of the recording; names may be newer than the view.
func (f *Frozen) View(names *Names, lives *samples.Lives) *View {
	v := f.view
	v.Symbols, v.Ends, v.lives, v.pages = names.Symbols, names.Ends, lives, f.pages
	if v.State != nil {
		v.State = v.State.With(unpaged(f.pages, len(f.pages)*pageChunks))
		v.Totals, v.Counts = v.State, &v.State.Counts
		return &v
	}
	c := *v.Counts // what it counts for itself is each one's own
	v.Totals, v.Counts = &c, &c
	return &v
}

// Held is what all of frozen take together, in bytes, roughly.
func Held(frozen iter.Seq[*Frozen]) int {
	pages, seen, sum := map[*page]bool{}, map[*state.Chunk]bool{}, 0
	for f := range frozen {
		sum += f.beside()
		for _, p := range f.pages {
			if pages[p] {
				continue
			}
			pages[p] = true
			sum += p.bytes()
			for _, c := range p.chunks {
				if c != nil && !seen[c] {
					seen[c] = true
					sum += c.Size()
				}
			}
		}
	}
	return sum
}
