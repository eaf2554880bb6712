package heap

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// TestFarTypeID shows that the largest id costs no table of its size.
func TestFarTypeID(t *testing.T) {
	s := newState()
	s.add(Object{Addr: 8, Words: 2, Type: trace.MaxTypeID})
	if len(s.PerType()) != 0 || s.Objects() != 1 {
		t.Fatalf("table of %d rows for one type", len(s.PerType()))
	}
	if got := taken(s, 0, 16); len(got) != 1 || s.Objects() != 0 || s.Bytes() != 0 {
		t.Fatalf("took %v, %d left", got, s.Objects())
	}
}
