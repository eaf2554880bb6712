package lifetimes

import (
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// listing takes in a state of which the moves that led to it are not recorded: after a full collection, or where
// reading starts. Serial and Parallel slide the live objects of old space down in their order, so what is listed of it
// begins with a subsequence of what was there; each listed object is taken for the first one that fits. Objects from
// young space follow; they are taken for those of the same type and size. After other collections an object of old
// space, and with G1 any object, is the one that was at its address. Fillers are never taken for an object of before:
// the collector makes new ones, and one wrong match would skip the real objects up to it.
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
	young, old := map[kind][]int{}, map[kind][]int{}
	linear := b.r.JVM.RegionWords == 0 // old space is one range, in which young collections move nothing
	for i, p := range before {
		k := kind{t.Type[p.object], t.Words[p.object]}
		switch {
		case b.r.Filler(k.typ):
		case linear && !inOld(p.addr):
			young[k] = append(young[k], i)
		case slides:
			old[k] = append(old[k], i)
		}
	}
	next := 0 // of before, where the search goes on
	unknown := len(t.Epochs) == 1 && b.r.JVM.Flags&trace.JVMAtStart == 0
	b.r.State.Each(func(o heap.Object) bool {
		found := -1
		switch {
		case !slides:
			for next < len(before) && before[next].addr < o.Addr {
				next++
			}
			if next < len(before) && before[next].addr == o.Addr && same(before[next], &o) &&
				(!linear || inOld(o.Addr)) {
				found = next
			}
		case inOld(o.Addr):
			q := old[kind{o.Type, uint32(o.Words)}]
			for len(q) > 0 && (q[0] < next || before[q[0]].addr < o.Addr) {
				q = q[1:]
			}
			if len(q) > 0 && q[0] < next+maxSlide {
				found, next, q = q[0], q[0]+1, q[1:]
			}
			old[kind{o.Type, uint32(o.Words)}] = q
		}
		if k := (kind{o.Type, uint32(o.Words)}); linear && found < 0 && len(young[k]) > 0 {
			found, young[k] = young[k][0], young[k][1:]
		}
		var object uint32
		if found >= 0 {
			object = before[found].object
			used[found] = true
			t.Seen[object] = x.At
		} else {
			object = b.add(o.Type, o.Words, x.Begin, x.At)
			if !b.r.Filler(o.Type) {
				x.FromEden += o.Words
			}
			if unknown {
				t.Unknown[object], t.BornLo[object] = true, 0
			}
		}
		b.put(o.Addr, object)
		return true
	})
	for i, p := range before {
		switch {
		case used[i]:
		case slides, linear && !inOld(p.addr):
			t.Dead[p.object] = x.At
		default:
			t.Lost++
		}
	}
}

// maxSlide bounds the search for the origin of a listed object: dead objects that lie side by side.
const maxSlide = 1 << 16
