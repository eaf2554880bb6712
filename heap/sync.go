package heap

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/trace"
)

// sync compares the listing with the state, if that was known, and adopts it. Both are in order of address: one merge.
func (r *Replayer) sync(b trace.Block) error {
	s, err := trace.DecodeSync(b)
	if err != nil {
		return err
	}
	if c := r.pending; c != nil {
		c.Synced, c.SyncProbe = true, s.Probe
	}
	if len(s.Lists) == 0 { // depth samples: sites only
		r.adoptSamples(s)
		return nil
	}
	cmp := Comparison{GC: s.GC, Reason: s.Reason, Explained: map[string]uint64{}}
	old := r.State
	var before []Object
	if r.Known {
		before = make([]Object, 0, old.n)
		old.Each(func(o Object) bool { before = append(before, o); return true })
	}
	next := newState()
	next.codes, next.codeOf = old.codes, old.codeOf
	eden := r.eden(s)
	j := 0
	bad := func(format string, args ...any) {
		cmp.Mismatches++
		if cmp.First == "" {
			cmp.First = fmt.Sprintf(format, args...)
		}
	}
	missing := func(o Object, inFiller bool) {
		switch {
		case eden.has(o.Addr): // listed after a full collection, not part of ordinary listings
			cmp.Explained["eden"]++
		case inFiller:
			cmp.Explained["scrubbed by the collector"]++
		case r.isFiller(o.Type):
			cmp.Explained["filler"]++
		default:
			bad("known and not listed: %s at word %d", r.TypeName(o.Type), o.Addr)
		}
	}
	// Segments come in the order of the collector's spaces, not of their addresses: the merge needs the latter.
	var listed []Object
	sorted := true
	for _, blob := range s.Lists {
		l := trace.NewListTokens(blob, r.table)
		for l.Next() {
			if l.Kind != trace.ListObject {
				continue
			}
			if n := len(listed); n > 0 && listed[n-1].Addr >= l.Addr {
				sorted = false
			}
			listed = append(listed, Object{Addr: l.Addr, Words: l.Words, Length: l.Length, Type: l.Type, Birth: uint32(s.GC)})
		}
		if err := l.Err(); err != nil {
			return err
		}
	}
	if !sorted {
		slices.SortFunc(listed, func(a, b Object) int { return stdcmp.Compare(a.Addr, b.Addr) })
	}
	for _, o := range listed {
		if r.Known {
			for j < len(before) && before[j].Addr < o.Addr {
				missing(before[j], false)
				j++
			}
			filler := r.isFiller(o.Type)
			if j < len(before) && before[j].Addr == o.Addr {
				was := before[j]
				j++
				if was.Type == o.Type && was.Length == o.Length {
					o.Birth = was.Birth
				} else if filler {
					cmp.Explained["scrubbed by the collector"]++
				} else {
					bad("%s at word %d was known as %s", r.TypeName(o.Type), o.Addr, r.TypeName(was.Type))
				}
			} else if eden.has(o.Addr) {
				cmp.Explained["eden"]++
			} else if filler {
				cmp.Explained["filler"]++
			} else {
				bad("listed and not known: %s at word %d", r.TypeName(o.Type), o.Addr)
			}
			if filler {
				for j < len(before) && before[j].Addr < o.Addr+o.Words {
					missing(before[j], true)
					j++
				}
			}
		}
		next.add(o)
	}
	for ; j < len(before); j++ {
		missing(before[j], false)
	}
	if r.Known {
		r.Compared = append(r.Compared, cmp)
	}
	if uint64(next.n) != s.Objects || next.bytes != s.Bytes {
		r.fault("sync point at collection %d: total says %d objects, %d bytes; listed are %d, %d", s.GC, s.Objects, s.Bytes, next.n, next.bytes)
	}
	r.State, r.Known, r.gc = next, true, s.GC
	r.adoptSamples(s)
	return nil
}

// ranges are stretches of words, ascending and apart.
type ranges []trace.Range

func (g ranges) has(addr uint64) bool {
	i := sort.Search(len(g), func(i int) bool { return g[i].Start > addr })
	return i > 0 && addr-g[i-1].Start < g[i-1].Words
}

// eden gives where eden is at a sync point: one stretch, or on G1 the regions of that kind.
func (r *Replayer) eden(s *trace.Sync) ranges {
	var g ranges
	at, words := uint64(0), r.JVM.RegionWords
	for _, run := range s.Regions {
		if words == 0 || run.Run > (trace.MaxAddr-at)/words {
			break
		}
		if n := run.Run * words; run.Kind == trace.SpaceEden && n > 0 {
			g = append(g, trace.Range{Start: at, Words: n})
		}
		at += run.Run * words
	}
	if words == 0 {
		for _, sp := range s.Spaces {
			if sp.Kind == trace.SpaceEden && sp.End > sp.Bottom {
				g = append(g, trace.Range{Start: sp.Bottom, Words: sp.End - sp.Bottom})
			}
		}
		slices.SortFunc(g, func(a, b trace.Range) int { return stdcmp.Compare(a.Start, b.Start) })
	}
	return g
}

func (r *Replayer) adoptSamples(s *trace.Sync) {
	live := make(map[uint64]*Sample, len(s.Samples))
	for _, l := range s.Samples {
		x := r.Live[l.ID]
		if x == nil {
			x = r.fresh[l.ID]
		}
		if x == nil {
			x = &Sample{Sample: trace.Sample{ID: l.ID, Thread: l.Thread, Size: l.Size, Interval: l.Interval, Frame: l.Frame}, Birth: l.Birth,
				Weight: weight(l.Size, l.Interval)}
		}
		live[l.ID] = x
		r.State.setSample(l.Addr, l.ID)
		if x.Type == 0 {
			x.Type = uint64(r.typeAt(l.Addr))
		}
	}
	r.Live = live
}

func (r *Replayer) typeAt(addr uint64) uint32 {
	c := r.State.chunks[addr>>chunkShift]
	if c == nil {
		return 0
	}
	c.tidy()
	for lo, hi := 0, len(c.off); lo < hi; {
		m := (lo + hi) / 2
		switch off := uint64(c.off[m]); {
		case off == addr&(chunkWords-1):
			return r.State.codes[c.code[m]].typ
		case off < addr&(chunkWords-1):
			lo = m + 1
		default:
			hi = m
		}
	}
	return 0
}

func (r *Replayer) isFiller(t uint32) bool { return r.Types[uint64(t)].Flags&trace.TypeFiller != 0 }

// TypeName is the type's name as Class.getTypeName gives it, hidden classes without the parts that change from run to run.
func (r *Replayer) TypeName(t uint32) string {
	ty, ok := r.Types[uint64(t)]
	if !ok {
		return "(unknown class)"
	}
	return ty.Pretty()
}
