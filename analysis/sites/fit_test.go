package sites

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// TestFitNeedsBytes: a type of which there are many small objects has no more of the large ones that were sampled than
// its bytes have room for.
func TestFitNeedsBytes(t *testing.T) {
	const n, size = 4, 5016
	var objects, bytes stats.Total
	for range n {
		objects.Add(1, 300)
		bytes.Add(size, 300)
	}
	all := heap.Count{Objects: 10_000, Bytes: 3 << 20}
	o, b := Fit(all, n, n*size, &objects, &bytes)
	if count := n + o*(objects.Sum-n); count*size > float64(all.Bytes) {
		t.Errorf("%.0f objects of %d bytes are more than the %d bytes of all (objects %.3f, bytes %.3f)", count, size,
			all.Bytes, o, b)
	}
	all.Bytes = 30 << 20
	if o, b := Fit(all, n, n*size, &objects, &bytes); o != 1 || b != 1 {
		t.Errorf("there is room for all: %.3f, %.3f", o, b)
	}
}
