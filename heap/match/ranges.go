package match

import (
	"cmp"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/trace"
)

// ranges are stretches of words, ascending and apart.
type ranges []trace.Range

func (g ranges) has(addr uint64) bool {
	i := sort.Search(len(g), func(i int) bool { return g[i].Start > addr })
	return i > 0 && addr-g[i-1].Start < g[i-1].Words
}

// where gives the stretches of a kind of space at a sync point: one, or on G1 the regions of that kind.
func (m *Matcher) where(kind uint64, spaces []trace.Space, regions []trace.RegionRun) ranges {
	if m.Symbols.JVM.RegionWords > 0 {
		return m.regionsOf(kind, regions)
	}
	var g ranges
	for _, sp := range spaces {
		if sp.Kind == kind && sp.End > sp.Bottom {
			g = append(g, trace.Range{Start: sp.Bottom, Words: sp.End - sp.Bottom})
		}
	}
	slices.SortFunc(g, func(a, b trace.Range) int { return cmp.Compare(a.Start, b.Start) })
	return g
}

// regionsOf gives the regions of a kind, neighbours as one stretch.
func (m *Matcher) regionsOf(kind uint64, regions []trace.RegionRun) ranges {
	var g ranges
	at, words := uint64(0), m.Symbols.JVM.RegionWords
	for _, run := range regions {
		if run.Run > (trace.MaxAddr-at)/words {
			break
		}
		if n := run.Run * words; run.Kind == kind && n > 0 {
			g = append(g, trace.Range{Start: at, Words: n})
		}
		at += run.Run * words
	}
	return g
}

// lateIn gives where Serial may have allocated in survivor spaces since the pause: above all that is known there, if
// the pause left something in eden.
func (m *Matcher) lateIn(old *state.State, spaces []trace.Space) ranges {
	full := slices.ContainsFunc(m.Spaces, func(s trace.Space) bool {
		return s.Kind == trace.SpaceEden && s.Top > s.Bottom
	})
	if !full {
		return nil
	}
	g := m.where(trace.SpaceSurvivor, spaces, nil)
	for i, r := range g {
		if addr, words, ok := old.Last(r); ok {
			g[i] = trace.Range{Start: addr + words, Words: r.Start + r.Words - addr - words}
		}
	}
	return g
}
