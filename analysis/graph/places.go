package graph

import (
	"math/bits"
	"runtime"
	"sync"

	"github.com/heapcam/heapcam/internal/room"
)

// places finds the object at an address: one bit a word, and for each 64 of them the number of objects before. Only
// pages with objects take room, so that two far objects do not take the whole address space.
type places struct {
	page  []uint32 // by word >> pageShift: its place in group, in pages, + 1; 0: no objects
	group []group
}

type group struct {
	bits   uint64
	before uint32
}

const (
	groupShift = 6
	pageShift  = 10
	pageGroups = 1 << (pageShift - groupShift)
)

// newPlaces makes places of ascending word indices.
func newPlaces(r *room.Room, addr []uint32) *places {
	p := &places{}
	if len(addr) == 0 {
		return p
	}
	p.page = make([]uint32, addr[len(addr)-1]>>pageShift+1)
	pages := uint32(0)
	last := ^uint32(0)
	for _, a := range addr {
		if k := a >> pageShift; k != last {
			last = k
			pages++
			p.page[k] = pages
		}
	}
	p.group = room.Make[group](r, int(pages)*pageGroups)
	at := -1
	for i, a := range addr {
		k := int(p.page[a>>pageShift]-1)*pageGroups + int(a>>groupShift%pageGroups)
		for at < k {
			at++
			p.group[at].before = uint32(i)
		}
		p.group[k].bits |= 1 << (a % 64)
	}
	for at++; at < len(p.group); at++ {
		p.group[at].before = uint32(len(addr))
	}
	return p
}

// find gives the number of the object at a word index, + 1, or 0.
func (p *places) find(word uint32) uint32 {
	k := word >> pageShift
	if k >= uint32(len(p.page)) || p.page[k] == 0 {
		return 0
	}
	g := &p.group[(p.page[k]-1)*pageGroups+word>>groupShift%pageGroups]
	if g.bits>>(word%64)&1 == 0 {
		return 0
	}
	return g.before + uint32(bits.OnesCount64(g.bits&(1<<(word%64)-1))) + 1
}

// resolve replaces each slot by the number of its target + 1, or dangling.
func (p *places) resolve(slots []uint32) {
	const part = 1 << 20
	var wait sync.WaitGroup
	parts := make(chan []uint32)
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for s := range parts {
				for i, a := range s {
					if a == 0 {
						continue
					}
					if s[i] = p.find(a - 1); s[i] == 0 {
						s[i] = dangling
					}
				}
			}
		})
	}
	for len(slots) > 0 {
		n := min(part, len(slots))
		parts <- slots[:n]
		slots = slots[n:]
	}
	close(parts)
	wait.Wait()
}
