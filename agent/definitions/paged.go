package definitions

import "unsafe"

// Ids are given in order, so what stands by id lies in pages of an array: a page serves pageIDs of them. Those of
// denseIDs and beyond, which only a hostile JVM gives, lie in a map.
const (
	pageIDs  = 1 << 10
	denseIDs = 1 << 21
)

// ids is a set of ids. The zero value is empty.
type ids struct {
	pages [][]uint64 // bits; nil: none of these
	far   map[uint64]struct{}
}

// add marks id and says whether it was not there yet. Of ids that lie far off it marks maxDefs at most.
func (s *ids) add(id uint64) bool {
	if id >= denseIDs {
		if _, ok := s.far[id]; ok {
			return false
		}
		if len(s.far) >= maxDefs {
			return true
		}
		if s.far == nil {
			s.far = map[uint64]struct{}{}
		}
		s.far[id] = struct{}{}
		return true
	}
	p := int(id / pageIDs)
	if n := p + 1 - len(s.pages); n > 0 {
		s.pages = append(s.pages, make([][]uint64, n)...)
	}
	if s.pages[p] == nil {
		s.pages[p] = make([]uint64, pageIDs/64)
	}
	w, bit := &s.pages[p][id%pageIDs/64], uint64(1)<<(id%64)
	if *w&bit != 0 {
		return false
	}
	*w |= bit
	return true
}

func (s *ids) remove(id uint64) {
	if id >= denseIDs {
		delete(s.far, id)
	} else if p := int(id / pageIDs); p < len(s.pages) && s.pages[p] != nil {
		s.pages[p][id%pageIDs/64] &^= 1 << (id % 64)
	}
}

// clear empties the set and keeps its pages: the next file needs the same ones.
func (s *ids) clear() {
	for _, p := range s.pages {
		clear(p)
	}
	s.far = nil
}

// paged holds values by id. The zero value of T means that there is none. The zero value is empty.
type paged[T comparable] struct {
	pages []*[pageIDs]T
	far   map[uint64]T
	n     int // how many there are
}

// get gives the value of id; the zero value: there is none.
func (t *paged[T]) get(id uint64) (v T) {
	if id >= denseIDs {
		return t.far[id]
	}
	if p := int(id / pageIDs); p < len(t.pages) && t.pages[p] != nil {
		v = t.pages[p][id%pageIDs]
	}
	return v
}

// set makes v, which is not the zero value, the value of id, and gives how many bytes more are held for it: those of a
// page if there was none, however few ids lie in it.
func (t *paged[T]) set(id uint64, v T) (bytes int) {
	var zero T
	fresh := t.get(id) == zero
	if fresh {
		t.n++
	}
	if id >= denseIDs {
		if t.far == nil {
			t.far = map[uint64]T{}
		}
		if t.far[id] = v; fresh {
			bytes = defBytes
		}
		return bytes
	}
	p := int(id / pageIDs)
	if n := p + 1 - len(t.pages); n > 0 {
		t.pages = append(t.pages, make([]*[pageIDs]T, n)...)
	}
	if t.pages[p] == nil {
		t.pages[p] = new([pageIDs]T)
		bytes = int(unsafe.Sizeof(*t.pages[p]))
	}
	t.pages[p][id%pageIDs] = v
	return bytes
}
