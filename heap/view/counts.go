package view

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/heap/state"
)

// siteCounts gives how many objects of each type and birth, as far as a fold by sites tells it apart, a state has of
// which Places.Count kept the counts.
func (v *View) siteCounts() *foldTable {
	codes, first := v.Counts.Codes, uint32(v.First)
	left := &foldTable{}
	of := func(typ, birth uint32) *cell { return left.at(uint64(typ)<<32 | uint64(birth)) }
	for code, n := range codes.Count {
		if n > 0 {
			x := of(codes.Type[code], first+1)
			x.objects += n
			x.words += n * codes.Words[code]
		}
	}
	for _, b := range v.born {
		x := of(b.typ, first+1)
		x.objects -= b.objects
		x.words -= b.words
		*of(b.typ, b.birth) = b.cell
	}
	return left
}

// folded adds what is left of types and births to out.
func (t *foldTable) folded(out []Folded) []Folded {
	for i, key := range t.keys {
		if n := t.count[i]; key != 0 && n.objects > 0 {
			birth := uint32(key - 1)
			out = append(out, Folded{Type: uint32((key - 1) >> 32), Birth: birth &^ state.AtLeastMark,
				AtLeast: birth&state.AtLeastMark != 0, Space: -1, Objects: n.objects, Bytes: n.words * 8})
		}
	}
	inOrder(out)
	return out
}

// foldSites is Fold by sites of a state of which Places.Count kept the counts.
func (v *View) foldSites() ([]Folded, error) {
	first, left := uint32(v.First), v.siteCounts()
	v.lives.Mu.RLock()
	defer v.lives.Mu.RUnlock()
	var t sampledTable
	n := 0
	for i := range v.lives.All {
		if v.lives.All[i].At(v.GC) {
			n++
		}
	}
	t.size(n)
	for i := range v.lives.All {
		x := &v.lives.All[i]
		if !x.At(v.GC) {
			continue
		}
		k := foldKey{uint32(x.Sample.Type), era(x.Birth, first), -1, 0, 0}
		n := left.at(uint64(k.group)<<32 | uint64(k.birth))
		n.objects--
		n.words -= x.Sample.Size / 8
		t.add(foldSampled{k, x.Sample.Frame, x.Sample.Thread}, x.Sample, x.Sample.Size)
	}
	if left.used+len(t.all) > maxFolded {
		return nil, ErrFold
	}
	out := left.folded(make([]Folded, 0, left.used+len(t.all)))
	t.byID()
	return t.folded(out, func(d *Folded, k foldKey) { d.Type, d.Birth, d.Space = k.group, k.birth, -1 }), nil
}

// inOrder puts what has no sample in an order of its own: sums over it come out the same, to the last bit, however it
// was counted.
func inOrder(fs []Folded) {
	birth := func(f *Folded) uint64 {
		if f.AtLeast {
			return uint64(f.Birth) | state.AtLeastMark
		}
		return uint64(f.Birth)
	}
	slices.SortFunc(fs, func(a, b Folded) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(birth(&a), birth(&b)))
	})
}
