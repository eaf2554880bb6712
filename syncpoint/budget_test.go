package syncpoint

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// TestBudget: a storm takes no more than the budget of its time, what was saved up before, and a number of listings
// that grows like a logarithm.
func TestBudget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const span = 600e9
		b := Budget{Bytes: rapid.Int64Range(1000, 1e8).Draw(rt, "bytes"), Span: span}
		size := rapid.Int64Range(1, 1e7).Draw(rt, "listing")
		every := rapid.Uint64Range(1e6, 60e9).Draw(rt, "ns between full collections")
		n := rapid.IntRange(1, 3000).Draw(rt, "collections")
		start := rapid.Uint64Range(0, 1e15).Draw(rt, "start")
		var kept, beyond int64
		for i := range n {
			now := start + uint64(i)*every
			before := b.left
			if b.Allow(now, size) {
				kept++
				if b.left == before || b.k > 0 {
					beyond++
				}
			}
		}
		time := float64(uint64(n)*every) / span
		most := float64(b.Bytes)*(1+time) + float64(size)*float64(bits.Len(uint(n/FirstK))+1)*(1+float64(kept))
		if float64(kept*size) > most {
			rt.Fatalf("%d listings of %d bytes in %d collections, budget %d a span, %.1f spans", kept, size, n, b.Bytes,
				time)
		}
		if size <= b.Bytes && kept == 0 {
			rt.Fatal("the first listing was left out")
		}
	})
	// Ten minutes of a collection a second, each listing a hundredth of the budget.
	b := Budget{Bytes: 25 << 20, Span: 600e9}
	kept := int64(0)
	for i := range uint64(600) {
		if b.Allow(i*1e9, 25<<18) {
			kept++
		}
	}
	if kept < 8 || kept > 16 {
		t.Errorf("%d listings were kept, the budget is 8 with what was saved up", kept)
	}
	if !b.Allow(3000e9, 25<<18) || b.skipped != 0 {
		t.Error("after a calm the next listing is kept")
	}
}
