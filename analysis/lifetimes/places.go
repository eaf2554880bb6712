package lifetimes

import "slices"

// places says which object is at which address. Pages cover 32 KiB of addresses; one word of heap takes four bytes.
type places struct {
	pages map[uint64]*page
	spare []*page
	last  *page // that of number at
	at    uint64
}

const (
	pageShift = 12
	pageWords = 1 << pageShift
)

type page struct {
	object [pageWords]uint32 // number + 1
	n      int
}

func newPlaces() *places { return &places{pages: map[uint64]*page{}} }

func (p *places) page(k uint64) *page {
	if p.last != nil && p.at == k {
		return p.last
	}
	x := p.pages[k]
	if x != nil {
		p.last, p.at = x, k
	}
	return x
}

// put puts an object at an address, and gives the one that was there before.
func (p *places) put(addr uint64, object uint32) (before uint32, was bool) {
	k := addr >> pageShift
	x := p.page(k)
	if x == nil {
		if n := len(p.spare); n > 0 {
			x, p.spare = p.spare[n-1], p.spare[:n-1]
		} else {
			x = &page{}
		}
		p.pages[k] = x
		p.last, p.at = x, k
	}
	at := &x.object[addr&(pageWords-1)]
	before, was = *at-1, *at != 0
	if !was {
		x.n++
	}
	*at = object + 1
	return before, was
}

// take removes the object at an address.
func (p *places) take(addr uint64) (object uint32, ok bool) {
	x := p.page(addr >> pageShift)
	if x == nil {
		return 0, false
	}
	at := &x.object[addr&(pageWords-1)]
	if *at == 0 {
		return 0, false
	}
	object = *at - 1
	*at = 0
	x.n--
	return object, true
}

// empty removes what is in [start, end) and calls f for each, in order of address.
func (p *places) empty(start, end uint64, f func(addr uint64, object uint32)) {
	if first, last := start>>pageShift, (end+pageWords-1)>>pageShift; last-first > uint64(len(p.pages)) {
		for _, k := range p.keys() {
			if k >= first && k < last {
				p.emptyPage(k, max(start, k<<pageShift), min(end, (k+1)<<pageShift), f)
			}
		}
		return
	}
	for a := start; a < end; {
		k := a >> pageShift
		stop := min(end, (k+1)<<pageShift)
		p.emptyPage(k, a, stop, f)
		a = stop
	}
}

// keys gives the numbers of the pages in order.
func (p *places) keys() []uint64 {
	ks := make([]uint64, 0, len(p.pages))
	for k := range p.pages {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

// emptyPage is empty for a range in page k.
func (p *places) emptyPage(k, start, end uint64, f func(addr uint64, object uint32)) {
	x := p.page(k)
	if x == nil {
		return
	}
	for i, last := start&(pageWords-1), (end-1)&(pageWords-1); i <= last && x.n > 0; i++ {
		if o := x.object[i]; o != 0 {
			x.object[i] = 0
			x.n--
			f(k<<pageShift|i, o-1)
		}
	}
	if x.n > 0 {
		return
	}
	delete(p.pages, k)
	p.last = nil
	if len(p.spare) < 1024 {
		p.spare = append(p.spare, x)
	}
}

// all removes everything, in order of address.
func (p *places) all(f func(addr uint64, object uint32)) {
	for _, k := range p.keys() {
		p.empty(k<<pageShift, (k+1)<<pageShift, f)
	}
}

// find gives the object at an address.
func (p *places) find(addr uint64) (object uint32, ok bool) {
	x := p.page(addr >> pageShift)
	if x == nil {
		return 0, false
	}
	o := x.object[addr&(pageWords-1)]
	return o - 1, o != 0
}
