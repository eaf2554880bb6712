package history

import (
	"maps"
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// Listing takes in a reference listing that was taken after the newest collection, at a time in seconds: dead are the
// samples that it did not reach. They count as dead from the collection on, so that is a floor.
func (h *Tracker) Listing(r *heap.Cursor, dead map[uint64]bool, at float64) {
	i := int32(len(h.Times) - 1)
	if i < 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(dead)) { // sums of weights come out the same each time
		s := r.Live.Get(id)
		if s == nil || h.dead[id] {
			continue
		}
		h.dead[id] = true
		f := h.young.Get(id)
		young := f.s != nil
		h.young.Delete(id)
		x, bytes := h.site(r.Symbols, s), float64(s.Size)*s.Weight
		if !young {
			x.Add(i, -1, -bytes)
		}
		if !young || f.lasts {
			h.Event(x, Event{h.Times[i], -bytes, -1, h.bornAt(s)})
		}
	}
	if n := len(h.Floors); n == 0 || h.Floors[n-1] != i {
		h.Floors = append(h.Floors, i)
	}
	h.age(r, max(at, h.Times[i]))
}

// Dead says of a sample that the reader holds for alive whether a reference listing did not reach it.
func (h *Tracker) Dead(id uint64) bool { return h.dead[id] }

// Survivors fills Survived and the Alive of Births of all series.
func (h *Tracker) Survivors(r *heap.Cursor) {
	for _, s := range h.Sites {
		s.Survived = s.Survived[:0]
		for i := range s.Births {
			s.Births[i].Alive = 0
		}
	}
	for id, s := range r.Live.All() {
		x := h.fast[[2]uint64{s.Frame, s.Type}]
		if x == nil {
			x = h.Sites[h.Key(r.Symbols, s)]
		}
		if x == nil || h.dead[id] {
			continue
		}
		x.Survived = append(x.Survived, h.bornAt(s))
		if i, ok := x.birth(s.Birth); ok {
			x.Births[i].Alive++
		}
	}
	for _, s := range h.Sites {
		slices.Sort(s.Survived)
	}
}
