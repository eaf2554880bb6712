package view

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/state/statetest"
	"github.com/heapcam/heapcam/heap/symbols"
)

// TestTallies folds kept states whose pages have been counted, by properties and eras drawn at random, and compares
// with a look at each object.
func TestTallies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	s := state.New()
	v := &View{Symbols: symbols.New(), State: s, Totals: s, Counts: &s.Counts, First: 5, GC: 20}
	lives := &samples.Lives{}
	const pageWords = pageChunks * state.ChunkWords
	addr := uint64(pageWords / 2)
	add := func(n int, oldest, newest uint32) {
		seen := samples.New()
		for range n {
			typ := uint32(1 + rng.IntN(5))
			length := uint64(rng.IntN(3)) * uint64(typ%2)
			o := state.Object{Addr: addr, Words: 2 + length, Length: length, Type: typ,
				Birth: oldest + rng.Uint32N(newest-oldest+1), AtLeast: rng.IntN(4) == 0}
			if rng.IntN(30) == 0 {
				x := &samples.Sample{Birth: uint64(o.Birth), Weight: 1}
				x.ID, x.Frame, x.Thread = addr, uint64(rng.IntN(7)), uint64(rng.IntN(2))
				seen.Resolved = append(seen.Resolved, x)
				o.Sample = x.ID
			}
			statetest.Put(s, o)
			addr += o.Words + uint64(rng.IntN(30))
		}
		lives.Follow(seen, v.GC)
	}
	add(40_000, 3, 6)
	add(40_000, 7, 20)
	var kept []*Frozen
	for range 4 { // pages that rest are counted when the state is kept again
		var before *Frozen
		if len(kept) > 0 {
			before = kept[len(kept)-1]
		}
		f, _ := v.Freeze(before)
		kept = append(kept, f)
		v.GC++
		add(1000, uint32(v.GC), uint32(v.GC))
	}
	names := v.Names()
	sorted := func(fs []Folded) []Folded {
		for i := range fs {
			slices.SortFunc(fs[i].Samples, func(a, b *samples.Sample) int { return cmp.Compare(a.ID, b.ID) })
		}
		slices.SortFunc(fs, func(a, b Folded) int {
			mark := func(b bool) int {
				if b {
					return 1
				}
				return 0
			}
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Length, b.Length), cmp.Compare(a.Birth, b.Birth),
				mark(a.AtLeast)-mark(b.AtLeast), cmp.Compare(a.Space, b.Space),
				cmp.Compare(a.Addr, b.Addr), mark(a.Sampled)-mark(b.Sampled), cmp.Compare(a.Frame, b.Frame),
				cmp.Compare(a.Thread, b.Thread))
		})
		return fs
	}
	spaces := []SpaceAt{{Start: 0, End: 2*pageWords + 1000, Kind: 1},
		{Start: 2*pageWords + 1000, End: 9 * pageWords, Kind: 2}}
	used := 0
	for i, k := range kept {
		for _, want := range []Want{WantBirth, WantBirth | WantLength, WantSamples,
			WantSamples | WantBirth | WantLength, WantBirth | WantSpace, WantSpace | WantLength, WantAddr,
			WantSamples | WantBirth | WantSpace} {
			for range 6 {
				var eras []uint32
				if rng.IntN(4) > 0 && want&WantBirth != 0 {
					for range 1 + rng.IntN(4) {
						eras = append(eras, 3+rng.Uint32N(20))
					}
					slices.Sort(eras)
					eras = slices.Compact(eras)
				}
				x := k.View(names, lives)
				for p := range x.pages {
					used += len(x.tallied(p))
				}
				got, err := x.Fold(want, spaces, 1<<12, eras...)
				if err != nil {
					t.Fatal(err)
				}
				x.pages = nil
				all, err := x.Fold(want, spaces, 1<<12, eras...)
				if err != nil {
					t.Fatal(err)
				}
				same := slices.EqualFunc(sorted(got), sorted(all), func(a, b Folded) bool {
					as, bs := a.Samples, b.Samples
					a.Samples, b.Samples = nil, nil
					return slices.Equal(as, bs) && a.Type == b.Type && a.Length == b.Length && a.Words == b.Words &&
						a.Birth == b.Birth && a.AtLeast == b.AtLeast && a.Space == b.Space && a.Addr == b.Addr &&
						a.Objects == b.Objects && a.Bytes == b.Bytes && a.Sampled == b.Sampled && a.Frame == b.Frame &&
						a.Thread == b.Thread
				})
				if !same {
					t.Fatalf("state %d, want %b, eras %v: %d combinations, one by one %d, or others", i, want, eras,
						len(got), len(all))
				}
			}
		}
	}
	if used == 0 {
		t.Fatal("nothing was counted")
	}
}
