package retention

import (
	"strings"
	"testing"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/trace/references"
	"github.com/heapcam/heapcam/trace/references/referencestest"
)

// TestCheck: references of reached objects that lead nowhere, or to an array where an object belongs, are counted;
// those of dead objects are not.
func TestCheck(t *testing.T) {
	b := referencestest.New()
	b.Class("[I")
	b.Class("app/A", "any", "string strong Ljava/lang/String;", "ints strong [I", "other strong Lapp/B;")
	a, dead := b.New("app/A"), b.New("app/A")
	s, ints, other := b.New("java/lang/String"), b.New("[I"), b.New("app/B")
	for _, x := range []int{a, dead} {
		b.Set(x, "any", ints)
		b.Set(x, "string", s)
		b.Set(x, "ints", ints)
		b.Set(x, "other", other)
	}
	b.Root(a, references.Root{Kind: references.JNIGlobal})
	check := func(spoil func(l *references.Listing)) Check {
		l := b.Listing()
		spoil(l)
		g, err := graph.Build(l, nil)
		if err != nil {
			t.Fatal(err)
		}
		return (&Heap{Graph: g}).Check()
	}
	sound := check(func(l *references.Listing) {
		l.Slots[4+3] = 3 // of the dead one
		l.Slots[4+1] = l.Slots[4+2]
	})
	if sound != (Check{Reached: 4, References: 4}) {
		t.Errorf("sound: %+v", sound)
	}
	for k, want := range map[int]string{1: "A.string Ljava/lang/String;", 2: "A.ints [I", 3: "A.other Lapp/B;"} {
		c := check(func(l *references.Listing) {
			l.Slots[k] = l.Slots[map[int]int{1: 0, 2: 3, 3: 0}[k]] // an array, an object, an array
		})
		if c.Unfit != 1 || c.Dangling != 0 || !strings.Contains(c.First, want) {
			t.Errorf("slot %d: %+v", k, c)
		}
	}
	c := check(func(l *references.Listing) {
		l.Slots[3]++
		l.Roots = append(l.Roots, references.Root{Target: 1 << 30})
	})
	if c.Dangling != 1 || c.Unfit != 0 || c.Roots != 1 || !strings.Contains(c.First, "no object is there") {
		t.Errorf("dangling: %+v", c)
	}
}
