package view

import "slices"

// Labels are numbers of objects, for WantLabel: what a reference listing knows of each. An object that is not among
// them has label 0.
type Labels struct {
	Words []uint32 // where objects begin, words from the heap base, ascending
	Label []uint32 // of each
}

// Of gives the label of the object at a word.
func (l *Labels) Of(word uint64) uint32 {
	if l == nil || word > 1<<32-1 {
		return 0
	}
	i, ok := slices.BinarySearch(l.Words, uint32(word))
	if !ok {
		return 0
	}
	return l.Label[i]
}

// from gives the place of the first object at or after a word.
func (l *Labels) from(word uint64) int {
	if word > 1<<32-1 {
		return len(l.Words)
	}
	i, _ := slices.BinarySearch(l.Words, uint32(word))
	return i
}

// labelled cuts the stretch from object i to j of a chunk into stretches of one label.
func (f *folder) labelled(base uint64, off []uint16, i, j int, each func(i, j int, label uint32)) {
	l := f.v.labels
	if f.want&WantLabel == 0 || l == nil {
		each(i, j, 0)
		return
	}
	at := l.from(base | uint64(off[i]))
	label := func(o uint16) uint32 {
		word := base | uint64(o)
		for at < len(l.Words) && uint64(l.Words[at]) < word {
			at++
		}
		if at < len(l.Words) && uint64(l.Words[at]) == word {
			return l.Label[at]
		}
		return 0
	}
	for i < j {
		x, k := label(off[i]), i+1
		var next uint32
		for k < j {
			if next = label(off[k]); next != x {
				break
			}
			k++
		}
		each(i, k, x)
		if f.err != nil {
			return
		}
		i = k
	}
}
