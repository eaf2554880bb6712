package session

import (
	"testing"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/trace"
)

// TestLargestOf: the line in place of a listing has its classes, the most bytes first, and nothing of one that cannot
// be read.
func TestLargestOf(t *testing.T) {
	types := []trace.Type{{ID: 1, Size: 16, Name: "Small"}, {ID: 2, Size: 24, Name: "Large"},
		{ID: 3, Size: 16, Flags: trace.TypeArray, Name: "[B"}}
	l, d := newLive(), definitions.New()
	l.defs(types)
	d.Add(trace.Defs{Types: types})
	e := trace.NewListEncoder(l.types)
	for i := range uint64(300) {
		e.Object(1000+100*i, uint32(1+i%3), i)
	}
	y := &trace.Sync{GC: 7, Lists: [][]byte{e.Bytes()}, Objects: 300}
	l.sync(y)
	want := "largest classes: [B 100 objects 17000 bytes; Large 100 objects 2400 bytes; Small 100 objects " +
		"1600 bytes; sites with most sampled bytes:"
	if got := largestOf(y, l, d, 20); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	y.Lists[0] = y.Lists[0][:len(y.Lists[0])/2]
	l.unknown()
	l.sync(y)
	if got, want := largestOf(y, l, d, 20), "largest classes: sites with most sampled bytes:"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
