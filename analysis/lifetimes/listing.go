package lifetimes

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// listing takes in a state of which the moves that led to it are not recorded: after a full collection, or where
// reading starts. Serial and Parallel slide the live objects of old space down in their order, so what is listed of it
// begins with a subsequence of what was there; each listed object is taken for the first one that fits. Objects from
// young space follow; they are taken for those of the same type and size. After other collections, and with G1, an
// object is the one that was at its address.
func (b *reader) listing(x *Epoch) {
	type place struct {
		addr   uint64
		object uint32
	}
	var before []place
	b.at.all(func(addr uint64, object uint32) { before = append(before, place{addr, object}) })
	b.live = 0
	t := b.t
	slides := x.Kind == trace.PauseFull && b.r.JVM.RegionWords == 0
	inOld := func(addr uint64) bool { return addr >= b.old.Start && addr-b.old.Start < b.old.Words }
	same := func(p place, o *heap.Object) bool {
		return t.Type[p.object] == o.Type && uint64(t.Words[p.object]) == o.Words
	}
	used := make([]bool, len(before))
	// Young objects by type and size, for what a full collection appended to old space.
	type kind struct{ typ, words uint32 }
	young := map[kind][]int{}
	if slides {
		for i, p := range before {
			if !inOld(p.addr) {
				k := kind{t.Type[p.object], t.Words[p.object]}
				young[k] = append(young[k], i)
			}
		}
	}
	next := 0 // of before, where the search goes on
	first := len(t.Epochs) == 1
	b.r.State.Each(func(o heap.Object) bool {
		found := -1
		switch {
		case !slides:
			for next < len(before) && before[next].addr < o.Addr {
				next++
			}
			if next < len(before) && before[next].addr == o.Addr && same(before[next], &o) {
				found = next
			}
		case inOld(o.Addr):
			for i := next; i < len(before) && i < next+maxSlide && inOld(before[i].addr); i++ {
				if before[i].addr >= o.Addr && same(before[i], &o) {
					found, next = i, i+1
					break
				}
			}
		}
		if k := (kind{o.Type, uint32(o.Words)}); slides && found < 0 && len(young[k]) > 0 {
			found, young[k] = young[k][0], young[k][1:]
		}
		var object uint32
		if found >= 0 {
			object = before[found].object
			used[found] = true
			t.Seen[object] = x.At
		} else {
			object = b.add(o.Type, o.Words, x.Begin, x.At)
			if o.Words*word > 0 {
				x.FromEden += o.Words
			}
			if first && b.r.JVM.Flags&trace.JVMAtStart == 0 || x.Kind != trace.PauseFull && !first {
				t.Unknown[object], t.BornLo[object] = true, 0
			}
		}
		b.put(o.Addr, object)
		return true
	})
	for i, p := range before {
		switch {
		case used[i]:
		case slides:
			t.Dead[p.object] = x.At
		default:
			t.Lost++
		}
	}
}

// maxSlide bounds the search for the origin of a listed object: dead objects that lie side by side.
const maxSlide = 1 << 20
