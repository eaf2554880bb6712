package samples

import (
	"iter"
	"maps"
	"math/bits"
	"slices"
)

// Live are samples by id.
type Live = ByID[*Sample]

// ByID has something for each of some samples, by id. The samples that were drawn are few: they are in a map. Of those
// of AddSited there may be as many as objects, with ids that follow each other: they are in pages, which are found
// without a hash and take no room for what is gone. The zero value is empty.
type ByID[V any] struct {
	drawn map[uint64]V
	first uint64     // number of the first page
	pages []*page[V] // nil: empty
	sited int        // how many are in pages
}

const pageIDs = 64

// page has the values of pageIDs ids.
type page[V any] struct {
	there  uint64 // a bit for each id that has a value
	values []V    // of these, in their order
}

// at gives the number of an id's page, its bit there, and whether it has a page at all.
func (m *ByID[V]) at(id uint64) (p *page[V], bit uint64) {
	n := (id - firstSited) / pageIDs
	if i := n - m.first; n >= m.first && i < uint64(len(m.pages)) {
		p = m.pages[i]
	}
	return p, 1 << ((id - firstSited) % pageIDs)
}

// before is how many values stand before that of a bit.
func (p *page[V]) before(bit uint64) int { return bits.OnesCount64(p.there & (bit - 1)) }

// Get gives what there is for an id, the zero value if nothing is.
func (m *ByID[V]) Get(id uint64) (v V) {
	if m == nil {
		return v
	}
	if !Sited(id) {
		return m.drawn[id]
	}
	if p, bit := m.at(id); p != nil && p.there&bit != 0 {
		return p.values[p.before(bit)]
	}
	return v
}

// Put sets what there is for an id.
func (m *ByID[V]) Put(id uint64, v V) {
	if !Sited(id) {
		if m.drawn == nil {
			m.drawn = map[uint64]V{}
		}
		m.drawn[id] = v
		return
	}
	p, bit := m.at(id)
	if p == nil {
		p = m.add((id - firstSited) / pageIDs)
	}
	i := p.before(bit)
	if p.there&bit != 0 {
		p.values[i] = v
		return
	}
	p.there |= bit
	p.values = slices.Insert(p.values, i, v)
	m.sited++
}

// add makes the page of that number.
func (m *ByID[V]) add(n uint64) *page[V] {
	m.trim()
	if len(m.pages) == 0 {
		m.first = n
	}
	if n < m.first {
		m.pages = append(make([]*page[V], m.first-n), m.pages...)
		m.first = n
	}
	for uint64(len(m.pages)) <= n-m.first {
		m.pages = append(m.pages, nil)
	}
	p := &page[V]{values: make([]V, 0, pageIDs)}
	m.pages[n-m.first] = p
	return p
}

// trim forgets the empty pages in front: what is oldest has mostly died.
func (m *ByID[V]) trim() {
	for len(m.pages) > 0 && m.pages[0] == nil {
		m.pages = m.pages[1:]
		m.first++
	}
}

// Delete takes out what there is for an id.
func (m *ByID[V]) Delete(id uint64) {
	if !Sited(id) {
		delete(m.drawn, id)
		return
	}
	p, bit := m.at(id)
	if p == nil || p.there&bit == 0 {
		return
	}
	i := p.before(bit)
	p.there &^= bit
	m.sited--
	if p.there == 0 {
		m.pages[(id-firstSited)/pageIDs-m.first] = nil
		return
	}
	if p.values = slices.Delete(p.values, i, i+1); 4*len(p.values) <= cap(p.values) {
		p.values = slices.Clone(p.values)
	}
}

// Len is how many ids have something.
func (m *ByID[V]) Len() int {
	if m == nil {
		return 0
	}
	return len(m.drawn) + m.sited
}

// All gives all of it: drawn samples in any order, then the others by id. What it has come to may be deleted.
func (m *ByID[V]) All() iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) {
		if m == nil {
			return
		}
		for id, v := range m.drawn {
			if !yield(id, v) {
				return
			}
		}
		first, pages := m.first, m.pages
		for k, p := range pages {
			if p == nil {
				continue
			}
			for all := p.there; all != 0; all &= all - 1 {
				bit := all & -all
				id := firstSited + (first+uint64(k))*pageIDs + uint64(bits.TrailingZeros64(bit))
				if p.there&bit != 0 && !yield(id, p.values[p.before(bit)]) {
					return
				}
			}
		}
	}
}

// drawnOnes gives those of samples that were drawn, in any order; each may be put anew.
func (m *ByID[V]) drawnOnes() []V { return slices.Collect(maps.Values(m.drawn)) }

// Values gives what All gives, without ids.
func (m *ByID[V]) Values() iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range m.All() {
			if !yield(v) {
				return
			}
		}
	}
}

// keep calls f, which deletes it, with each sample of AddSited of which there has no bit, by id.
func (m *ByID[V]) keep(there []uint64, f func(V)) {
	m.trim()
	for k, p := range m.pages {
		if p == nil {
			continue
		}
		n := m.first + uint64(k)
		for gone := p.there &^ there[n]; gone != 0; gone &= gone - 1 {
			f(p.values[p.before(gone&-gone)])
		}
	}
}
