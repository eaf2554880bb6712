package samples

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestByID does the same to a ByID and a map: ids that were drawn and ids of AddSited, in rising order and not, come,
// change, and go one by one, while all are looked at, or because keep leaves only some.
func TestByID(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(1, seed))
		var m ByID[int]
		want, next := map[uint64]int{}, rnd.Uint64N(1000)
		for range 60 {
			for range rnd.IntN(300) {
				id := firstSited + next
				switch rnd.IntN(10) {
				case 0:
					id = 1 + rnd.Uint64N(50)
				case 1:
					id = firstSited + rnd.Uint64N(next+1)
				default:
					next += 1 + rnd.Uint64N(1+rnd.Uint64N(100))
				}
				v := rnd.Int()
				m.Put(id, v)
				want[id] = v
			}
			share := rnd.Float64()
			switch rnd.IntN(3) {
			case 0:
				for _, id := range slices.Sorted(maps.Keys(want)) {
					if rnd.Float64() < share {
						m.Delete(id)
						delete(want, id)
					}
				}
			case 1:
				for id := range m.All() {
					if rnd.Float64() < share {
						m.Delete(id)
						delete(want, id)
					}
				}
			default:
				left := make([]uint64, next/pageIDs+1)
				gone := map[int]uint64{}
				for id, v := range want {
					if k := id - firstSited; Sited(id) && rnd.Float64() < share {
						left[k/pageIDs] |= 1 << (k % pageIDs)
					} else if Sited(id) {
						gone[v] = id
						delete(want, id)
					}
				}
				m.keep(left, func(v int) {
					m.Delete(gone[v])
					delete(gone, v)
				})
				if len(gone) > 0 {
					t.Fatalf("%d that are not kept stay", len(gone))
				}
			}
			m.Delete(firstSited + next + 1)
			if got := maps.Collect(m.All()); !maps.Equal(got, want) || m.Len() != len(want) {
				t.Fatalf("seed %d: %d (%d) of %d ids", seed, len(got), m.Len(), len(want))
			}
			for _, id := range append(slices.Collect(maps.Keys(want)), firstSited+next+1, 51, 1<<60) {
				if m.Get(id) != want[id] {
					t.Fatalf("seed %d: id %d has %d, want %d", seed, id, m.Get(id), want[id])
				}
			}
		}
	}
}
