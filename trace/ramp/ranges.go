package ramp

import (
	"cmp"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/trace"
)

// Ranges is a set of addresses, in words: stretches that ascend and do not touch. Its zero value is empty.
type Ranges []trace.Range

// Of makes a set of ranges in any order.
func Of(all []trace.Range) Ranges {
	var g Ranges
	sorted := slices.SortedFunc(slices.Values(all), func(a, b trace.Range) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range sorted { // each is added at the end
		g.Add(r)
	}
	return g
}

// from gives the index of the first stretch that ends behind addr.
func (g Ranges) from(addr uint64) int {
	return sort.Search(len(g), func(i int) bool { return g[i].Start+g[i].Words > addr })
}

// Has says whether addr is in the set.
func (g Ranges) Has(addr uint64) bool {
	i := g.from(addr)
	return i < len(g) && g[i].Start <= addr
}

// Meets says whether the set has an address of r.
func (g Ranges) Meets(r trace.Range) bool {
	i := g.from(r.Start)
	return i < len(g) && r.Words > 0 && g[i].Start < r.Start+r.Words
}

// Words is how many words the set has.
func (g Ranges) Words() (n uint64) {
	for _, r := range g {
		n += r.Words
	}
	return n
}

// Add adds a range.
func (g *Ranges) Add(r trace.Range) {
	if r.Words == 0 {
		return
	}
	end := r.Start + r.Words
	// Stretches that touch r become one with it.
	i := sort.Search(len(*g), func(i int) bool { return (*g)[i].Start+(*g)[i].Words >= r.Start })
	j := i
	for ; j < len(*g) && (*g)[j].Start <= end; j++ {
		r.Start, end = min(r.Start, (*g)[j].Start), max(end, (*g)[j].Start+(*g)[j].Words)
	}
	r.Words = end - r.Start
	*g = slices.Replace(*g, i, j, r)
}

// Remove removes a range.
func (g *Ranges) Remove(r trace.Range) {
	if !g.Meets(r) {
		return
	}
	end := r.Start + r.Words
	i := g.from(r.Start)
	j := i
	var left [2]trace.Range // what stays of the first and the last stretch
	n := 0
	for ; j < len(*g) && (*g)[j].Start < end; j++ {
		s := (*g)[j]
		if s.Start < r.Start {
			left[n], n = trace.Range{Start: s.Start, Words: r.Start - s.Start}, n+1
		}
		if e := s.Start + s.Words; e > end {
			left[n], n = trace.Range{Start: end, Words: e - end}, n+1
		}
	}
	*g = slices.Replace(*g, i, j, left[:n]...)
}

// Split divides r at the borders of the set: each calls f with a part and whether the set has it, in order.
func (g Ranges) Split(r trace.Range, f func(part trace.Range, has bool)) {
	at, end := r.Start, r.Start+r.Words
	for i := g.from(at); at < end; i++ {
		next, stop := end, end
		if i < len(g) {
			next, stop = min(g[i].Start, end), min(g[i].Start+g[i].Words, end)
		}
		if next > at {
			f(trace.Range{Start: at, Words: next - at}, false)
			at = next
		}
		if stop > at {
			f(trace.Range{Start: at, Words: stop - at}, true)
			at = stop
		}
	}
}

// Clone gives a set that does not change with g.
func (g Ranges) Clone() Ranges { return slices.Clone(g) }
