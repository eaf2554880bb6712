package references

import (
	"strings"
	"testing"
)

func two() *Listing {
	return &Listing{Addr: []uint32{2, 5}, Code: []uint32{0, 0}, Words: []uint32{3, 2}, First: []uint64{0, 1, 2},
		Slots: []uint32{6, 0}, Shapes: []Shape{{Name: "A", Fields: []Field{{Name: "a"}}}}}
}

func TestFind(t *testing.T) {
	l := two()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[uint32]int{0: -1, 1: -1, 3: 0, 4: -1, 6: 1, 7: -1, 1<<32 - 1: -1} {
		if got := l.Find(slot); got != want {
			t.Errorf("Find(%d) = %d, want %d", slot, got, want)
		}
	}
	if got := l.Find(l.Of(0)[0]); got != 1 {
		t.Errorf("slot of object 0 points at object %d, want 1", got)
	}
}

func TestCheck(t *testing.T) {
	for want, spoil := range map[string]func(*Listing){
		"columns":      func(l *Listing) { l.Words = l.Words[:1] },
		"slots are":    func(l *Listing) { l.Slots = l.Slots[:1] },
		"out of order": func(l *Listing) { l.Words[0] = 4 },
		"no shape":     func(l *Listing) { l.Code[1] = 1 },
		"is of no":     func(l *Listing) { l.Shapes[0].Kind = kinds },
		"no strength":  func(l *Listing) { l.Shapes[0].Fields[0].Strength = strengths },
		"root 0":       func(l *Listing) { l.Roots = []Root{{Kind: rootKinds}} },
		"object 0 of":  func(l *Listing) { l.First[1] = 2; l.First[2] = 2 },
	} {
		l := two()
		spoil(l)
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
