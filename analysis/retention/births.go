package retention

import (
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// BirthSpans is how many spans of time Births tells apart.
const BirthSpans = 24

// mostSizes bounds the sizes of types that Births tells apart.
const mostSizes = 1 << 17

// Sized is a type and the size of its objects in words of 8 bytes.
type Sized struct {
	Type, Words uint32
}

// Births says when all that a listing of references found alive was born, by type and size: exactly, where samples
// are a few. Object i of a span was born after collection Ends[i-1] and up to collection Ends[i], or before, if it is
// only known to be as old as that.
type Births struct {
	GC   uint64              // the collection of the listing
	Ends [BirthSpans]uint64  // collections, ascending; the last is GC
	At   [BirthSpans]float64 // when they were, seconds of the stream
	Of   map[Sized]*[BirthSpans]uint32
}

// Times are the collections up to that of a listing, and when they were in seconds of the stream: both ascend.
type Times struct {
	GCs []uint64
	At  []float64
}

// Births counts what is alive in v, the state after collection GC, by birth; nil if that is too much, or if v does not
// know its objects. The spans are of one length, as far as collections allow.
func (l *Liveness) Births(v *heap.View, times Times) *Births {
	n := len(times.GCs)
	if v.State == nil || n == 0 || times.GCs[n-1] != l.GC {
		return nil
	}
	b := &Births{GC: l.GC, Of: map[Sized]*[BirthSpans]uint32{}}
	first, last := times.At[0], times.At[n-1]
	for i := range b.Ends {
		k, _ := slices.BinarySearch(times.At, first+(last-first)*float64(i+1)/BirthSpans)
		k = min(k, n-1)
		b.Ends[i], b.At[i] = times.GCs[k], times.At[k]
	}
	at, few := 0, true
	v.State.Each(func(o heap.Object) bool {
		for at < len(l.addr) && uint64(l.addr[at]) < o.Addr {
			at++
		}
		if at == len(l.addr) {
			return false
		}
		if uint64(l.addr[at]) != o.Addr || l.typ[at] != o.Type || reaches[l.level[at]] != Live {
			return true
		}
		k := Sized{o.Type, uint32(o.Words)}
		x := b.Of[k]
		if x == nil {
			if few = len(b.Of) < mostSizes; !few {
				return false
			}
			x = new([BirthSpans]uint32)
			b.Of[k] = x
		}
		i, _ := slices.BinarySearch(b.Ends[:], uint64(o.Birth))
		x[min(i, BirthSpans-1)]++
		return true
	})
	if !few {
		return nil
	}
	return b
}
