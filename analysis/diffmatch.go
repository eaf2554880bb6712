package analysis

import (
	"math"

	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
)

// foldSpaces makes kinds of spaces of spaces and regions: Space is the kind then.
func foldSpaces(fs []heap.Folded, spaces []heap.SpaceAt) []heap.Folded {
	type key struct {
		typ           uint32
		length, words uint64
		birth         uint32
		atLeast       bool
		space         int
		was           uint64
		sampled       bool
		frame, thread uint64
	}
	at := map[key]int{}
	var out []heap.Folded
	for _, f := range fs {
		kind := 0
		if f.Space >= 0 {
			kind = int(spaces[f.Space].Kind & 7)
		}
		f.Space = kind
		k := key{f.Type, f.Length, f.Words, f.Birth, f.AtLeast, kind, f.Was, f.Sampled, f.Frame, f.Thread}
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, f)
			continue
		}
		out[i].Objects += f.Objects
		out[i].Bytes += f.Bytes
		out[i].Samples = append(out[i].Samples, f.Samples...)
	}
	return out
}

// samplePlaces says where samples are in a state that was folded.
type samplePlaces struct {
	first uint64
	dense []int32 // 1 + place, by id from first on
	far   map[uint64]int32
}

// placesOf puts ids, which are mostly one after the other, into a slice unless that would be much larger than they are
// many.
func placesOf(fs []heap.Folded) *samplePlaces {
	p := &samplePlaces{first: math.MaxUint64}
	n, last := uint64(0), uint64(0)
	for i := range fs {
		for _, s := range fs[i].Samples {
			n++
			p.first, last = min(p.first, s.ID), max(last, s.ID)
		}
	}
	if n > 0 && last-p.first < 16*n+1024 {
		p.dense = make([]int32, last-p.first+1)
	} else {
		p.far = make(map[uint64]int32, n)
	}
	for i := range fs {
		for _, s := range fs[i].Samples {
			if p.dense != nil {
				p.dense[s.ID-p.first] = int32(i) + 1
			} else {
				p.far[s.ID] = int32(i) + 1
			}
		}
	}
	return p
}

// of gives the place of a sample, -1 if it is not there.
func (p *samplePlaces) of(id uint64) int32 {
	if p.dense == nil {
		return p.far[id] - 1
	}
	if at := id - p.first; at < uint64(len(p.dense)) {
		return p.dense[at] - 1
	}
	return -1
}

// match takes the states apart. What was born up to from and lives in the second is permanent, whatever its place; of
// each diffStratum that leaves what died, exactly unless identity was lost.
func match(r *heap.View, f1, f2 []heap.Folded, from uint64) ([]classify.Tuple, map[sizeKey]*diffStratum) {
	type key struct {
		sizeKey
		birth   uint32
		atLeast bool
		was     uint64
	}
	keyOf := func(f *heap.Folded) key {
		return key{sizeKey{f.Type, f.Length, f.Words}, f.Birth, f.AtLeast, f.Was}
	}
	strata := map[sizeKey]*diffStratum{}
	at := func(f *heap.Folded) *diffStratum {
		k := sizeKey{f.Type, f.Length, f.Words}
		s := strata[k]
		if s == nil {
			s = &diffStratum{size: float64(f.Words * 8)}
			strata[k] = s
		}
		return s
	}
	tuple := func(f *heap.Folded, part uint8, objects uint64, samples []*heap.Sample) classify.Tuple {
		t := classify.Tuple{Type: f.Type, Length: f.Length, Size: f.Words * 8, Birth: f.Birth, AtLeast: f.AtLeast,
			Space: f.Space, Objects: objects, Bytes: objects * f.Words * 8, Sampled: f.Sampled, Frame: f.Frame,
			Thread: f.Thread, Part: part}
		for _, s := range samples {
			t.WObjects.Add(1, s.Weight)
			t.WBytes.Add(float64(s.Size), s.Weight)
		}
		return t
	}
	there := placesOf(f1)
	was := map[key]int32{}            // places in f1 of what has no sample
	left := make([]uint64, len(f1)+1) // objects of each of f1 that were not found in the second; the last is of nothing
	for i := range f1 {
		if !f1[i].Sampled {
			was[keyOf(&f1[i])] = int32(i)
		}
		left[i] = f1[i].Objects
	}
	out := make([]classify.Tuple, 0, len(f2)+len(f2)/8)
	for i := range f2 {
		f := &f2[i]
		switch {
		case f.Sampled: // its identity is never lost
			var old, fresh []*heap.Sample
			for _, s := range f.Samples {
				if i := there.of(s.ID); i >= 0 {
					left[i] -= min(left[i], 1)
					old = append(old, s)
				} else {
					fresh = append(fresh, s)
				}
			}
			if n := uint64(len(old)); n > 0 {
				out = append(out, tuple(f, partPermanent, n, old))
			}
			if n := uint64(len(fresh)); n > 0 {
				out = append(out, tuple(f, partBorn, n, fresh))
			}
		case uint64(f.Birth) <= from:
			k, ok := was[keyOf(f)]
			if !ok {
				k = int32(len(f1))
			}
			n := min(left[k], f.Objects)
			left[k] -= n
			at(f).loose += float64(f.Objects - n)
			if n > 0 {
				out = append(out, tuple(f, partPermanent, n, nil))
			}
			if n < f.Objects {
				out = append(out, tuple(f, partLoose, f.Objects-n, nil))
			}
		case f.AtLeast:
			at(f).unclear += float64(f.Objects)
			out = append(out, tuple(f, partUnclear, f.Objects, f.Samples))
		default:
			out = append(out, tuple(f, partBorn, f.Objects, f.Samples))
		}
	}
	for i, n := range left {
		if n == 0 {
			continue
		}
		f := &f1[i]
		at(f).gone += float64(n)
		var dead []*heap.Sample
		for _, s := range f.Samples {
			if r.Sample(s.ID) == nil {
				dead = append(dead, s)
			}
		}
		out = append(out, tuple(f, partDied, n, dead))
	}
	for k, s := range strata {
		if s.loose == 0 && s.unclear == 0 { // all were matched
			delete(strata, k)
		}
	}
	return out, strata
}
