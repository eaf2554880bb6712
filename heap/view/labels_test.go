package view

import (
	"testing"
)

// TestLabels: the label of an object is found by its address, and what is beside objects has none.
func TestLabels(t *testing.T) {
	l := &Labels{Words: []uint32{2, 5, 9}, Label: []uint32{7, 8, 9}}
	for word, want := range map[uint64]uint32{0: 0, 2: 7, 3: 0, 5: 8, 9: 9, 10: 0, 1<<32 + 2: 0} {
		if got := l.Of(word); got != want {
			t.Errorf("word %d: label %d, want %d", word, got, want)
		}
	}
	if (*Labels)(nil).Of(2) != 0 || l.from(3) != 1 || l.from(1<<40) != 3 {
		t.Error("no labels, or a place beside them")
	}
}
