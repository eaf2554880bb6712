package view

import (
	"errors"
	"sync"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
)

// Want says which properties of objects Fold keeps apart beside the type.
type Want uint8

// The properties.
const (
	WantLength Want = 1 << iota // length and size
	WantBirth
	WantSpace
	WantAddr
	WantSamples // stack and thread of sampled objects, and with them whether the birth is after View.First
	WantLabel   // of View.Labelled
)

// Folded is a distinct combination of properties. What was not wanted is zero, Space -1.
type Folded struct {
	Type          uint32
	Length, Words uint64 // of each object
	Birth         uint32
	AtLeast       bool
	Space         int
	// with WantBirth, after MarkSpaces: kind of the space where the objects stood then, 0 if they were not there or it
	// is not known
	Was            uint64
	Addr           uint64 // words, the start of its range
	Label          uint32
	Objects, Bytes uint64

	Sampled       bool
	Frame, Thread uint64
	Samples       []*samples.Sample // the objects, if they are sampled
}

// Era gives what is left of a birth where only eras distinguish births, collections in ascending order: the first
// of them that it is not after, or the one after the last.
func Era(birth uint32, eras []uint32) uint32 {
	for _, e := range eras {
		if birth <= e {
			return e
		}
	}
	return eras[len(eras)-1] + 1
}

// ErrFold says that a state has more distinct combinations than Fold may give.
var ErrFold = errors.New("too many distinct combinations of properties: " +
	"take fewer or coarser classifiers (a larger address range)")

// ErrNoObjects says that a view does not know what Fold was asked for: it holds counts and no objects.
var ErrNoObjects = errors.New("only totals are known of this collection, not its objects")

// maxFolded bounds the combinations.
const maxFolded = 1 << 22

// Fold counts the objects of the view by the properties that are wanted. spaces are those of Spaces, for WantSpace;
// grain is the size of the ranges of addresses in words, a power of two, for WantAddr. With eras, births are
// distinguished only as Era does: all births would multiply the combinations. WantSamples without WantBirth has one
// era: an object without a sample may be older than all samples, and no more is asked of it. Its error is ErrFold. A
// view without State can be folded by as much as it knows: types, lengths, or sites (Frozen.Sites).
func (v *View) Fold(want Want, spaces []SpaceAt, grain uint64, eras ...uint32) ([]Folded, error) {
	if v.born != nil && want == WantSamples {
		return v.foldSites()
	}
	if want&(WantSamples|WantBirth) == WantSamples {
		eras = []uint32{uint32(v.First)}
	}
	if eras != nil {
		want |= WantBirth
	}
	if want == 0 {
		return v.foldTypes(), nil
	}
	if want == WantLength && v.Counts != nil {
		return v.foldLengths(), nil
	}
	s := v.State
	if s == nil {
		return nil, ErrNoObjects
	}
	keys := s.Keys(nil, 0, 1<<46)
	group, groups := groupsOf(s.Codes, want)
	// What is out of order is put in order first: that changes the state's counts, which goroutines share.
	for _, k := range keys {
		s.Tidy(s.Chunks[k])
	}
	live, done := v.samples()
	defer done()
	return foldParts(keys, func() *folder {
		f := &folder{
			v: v, s: s, want: want, spaces: spaces, group: group, groups: groups, eras: eras, live: live,
			tables: map[[2]uint64]*foldTable{}, most: min(denseBirths, max(1, maxDense/(len(group)+1))),
		}
		for uint64(1)<<f.shift < grain && f.shift < 45 {
			f.shift++
		}
		return f
	})
}

// foldTypes folds by type alone: that much is counted already.
func (v *View) foldTypes() (out []Folded) {
	if v.Counts == nil {
		for id, n := range v.Totals.PerType() {
			if n.Objects > 0 {
				out = append(out, Folded{Type: uint32(id), Space: -1, Objects: n.Objects, Bytes: n.Bytes})
			}
		}
		return out
	}
	codes := v.Counts.Codes
	// by type: 1 + its place in out. Only a recording that no probe wrote has ids that a slice would not hold.
	var dense []int32
	far := map[uint32]int32{}
	for i, n := range codes.Count {
		if n == 0 {
			continue
		}
		t := codes.Type[i]
		at := int32(0)
		if t >= state.DenseTypes {
			at = far[t]
		} else {
			if grow := int(t) + 1 - len(dense); grow > 0 {
				dense = append(dense, make([]int32, grow)...)
			}
			at = dense[t]
		}
		if at == 0 {
			out = append(out, Folded{Type: t, Space: -1})
			if at = int32(len(out)); t < state.DenseTypes {
				dense[t] = at
			} else {
				far[t] = at
			}
		}
		f := &out[at-1]
		f.Objects += n
		f.Bytes += n * codes.Words[i] * 8
	}
	return out
}

// foldLengths folds by type and length: the dictionary counts these.
func (v *View) foldLengths() (out []Folded) {
	codes := v.Counts.Codes
	for i, n := range codes.Count {
		if n > 0 {
			out = append(out, Folded{
				Type: codes.Type[i], Length: codes.Length[i], Words: codes.Words[i], Space: -1,
				Objects: n, Bytes: n * codes.Words[i] * 8,
			})
		}
	}
	return out
}

// groupsOf gives the group of each code, by which a fold counts, and the number of the last group.
func groupsOf(codes *state.Codes, want Want) (group []uint32, groups uint32) {
	group = make([]uint32, len(codes.Type))
	for i := range group {
		group[i] = uint32(i)
		if want&WantLength == 0 {
			group[i] = codes.Type[i]
		}
	}
	top := uint32(0)
	for _, g := range group {
		top = max(top, g)
	}
	if want&WantLength == 0 && top >= state.DenseTypes { // ids that no honest probe gives
		ids, at := map[uint32]uint32{}, uint32(0)
		for i, g := range group {
			id, ok := ids[g]
			if !ok {
				id = uint32(i)
				ids[g] = id
			}
			group[i], at = id, max(at, id)
		}
		top = at
	}
	return group, top + 1
}

// foldParts counts the chunks of the numbers keys by two goroutines, or one if there are few.
func foldParts(keys []uint64, newFolder func() *folder) ([]Folded, error) {
	var fs []*folder
	var wg sync.WaitGroup
	var parts []part
	left := 0 // work
	for len(parts) > 0 || len(fs) == 0 {
		f := newFolder()
		fs = append(fs, f)
		if len(fs) == 1 {
			parts, left = f.parts(keys)
			left = max(left/2, 1<<17)
		}
		n, sampled := 0, 0
		for ; n < len(parts) && (left > 0 || len(fs) == 2); n++ {
			left -= parts[n].work
			for _, k := range parts[n].keys {
				sampled += len(f.s.Chunks[k].Samples)
			}
		}
		mine := parts[:n]
		parts = parts[n:]
		if f.want&WantSamples != 0 {
			f.sampled.size(sampled)
		}
		wg.Go(func() {
			for _, x := range mine {
				if f.err == nil {
					f.part(x)
				}
			}
			f.flush()
		})
	}
	wg.Wait()
	for _, f := range fs[1:] {
		fs[0].merge(f)
	}
	return fs[0].result()
}
