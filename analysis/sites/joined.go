package sites

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// lines gives frames by what is printed of them: those of one line are one, though its bytecodes differ.
type lines struct {
	r    *heap.Symbols
	of   map[uint64]uint64 // by frame
	ids  map[lineKey]uint64
	path []uint64
}

const deepest = 1 << 12 // frames

type lineKey struct {
	parent              uint64
	class, method, file string
	line                int
	native              bool
}

// number gives the same for frames whose stacks read alike; 0 for no stack, and for one that is too deep to tell.
func (l *lines) number(frame uint64) uint64 {
	l.path = l.path[:0]
	n, ok := uint64(0), false
	for frame != 0 {
		if n, ok = l.of[frame]; ok {
			break
		}
		f, there := l.r.Frames[frame]
		if !there {
			break
		}
		if len(l.path) == deepest { // damage may even make a circle
			return 0
		}
		l.path = append(l.path, frame)
		frame = f.Parent
	}
	for _, x := range slices.Backward(l.path) {
		f := l.r.Frames[x]
		m := frameOf(l.r.Methods[f.Method], f.BCI)
		k := lineKey{n, m.Class, m.Method, m.File, 0, m.Native}
		if m.Line != nil {
			k.line = *m.Line
		}
		if n, ok = l.ids[k]; !ok {
			n = uint64(len(l.ids) + 1)
			l.ids[k] = n
		}
		l.of[x] = n
	}
	return n
}

// alike gives, for the keys of all, those whose sites read alike, by the one of the lowest frame: none that is alone.
func alike(r *heap.Symbols, all ...map[Key]*Tally) map[Key][]Key {
	type place struct {
		class Class
		n     uint64
	}
	l := lines{r: r, of: map[uint64]uint64{}, ids: map[lineKey]uint64{}}
	first, more := map[place]Key{}, map[place][]Key{}
	for i, by := range all {
		for k := range by {
			p := place{k.Class, l.number(k.Frame)}
			if p.n == 0 || i > 0 && all[0][k] != nil { // no stack, or seen already
				continue
			}
			o, ok := first[p]
			if !ok {
				first[p] = k
				continue
			}
			if len(more[p]) == 0 {
				more[p] = []Key{o}
			}
			more[p] = append(more[p], k)
		}
	}
	out := map[Key][]Key{}
	for _, keys := range more {
		slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.Frame, b.Frame) })
		out[keys[0]] = keys
	}
	return out
}

// joined gives by with one tally for each of same.
func joined(by map[Key]*Tally, same map[Key][]Key) map[Key]*Tally {
	if len(same) == 0 {
		return by
	}
	out := maps.Clone(by)
	for to, keys := range same {
		sum, found := &Tally{}, false
		for _, k := range keys { // in one order, so that sums are the same each time
			if t := by[k]; t != nil {
				sum.merge(t)
				found = true
			}
			delete(out, k)
		}
		if found {
			out[to] = sum
		}
	}
	return out
}
