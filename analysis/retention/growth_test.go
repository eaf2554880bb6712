package retention

import (
	"testing"
)

// TestGrowth: groups and objects are compared by name and path; what retains as much as before is no row.
func TestGrowth(t *testing.T) {
	big := func(path string, n uint64) Big { return Big{Path: Path{Text: path}, Retained: n} }
	before := &DominatorsReport{By: ByObject, Biggest: []Big{big("static A.map", 100), big("static B.list", 50),
		big("static B.list", 20), big("static C.gone", 30)}}
	after := &DominatorsReport{By: ByObject, Biggest: []Big{big("static A.map", 900), big("static B.list", 50),
		big("static D.new", 7)}}
	r := Growth(before, after, 0)
	want := []Grown{{"static A.map", 100, 900, 800}, {"static D.new", 0, 7, 7}, {"static C.gone", 30, 0, -30}}
	if len(r.Groups) != len(want) {
		t.Fatalf("%+v", r.Groups)
	}
	for i := range want {
		if r.Groups[i] != want[i] {
			t.Errorf("row %d: %+v, want %+v", i, r.Groups[i], want[i])
		}
	}
	if r = Growth(&DominatorsReport{By: ByClass, Groups: []Group{{Name: "A", Retained: 1}}},
		&DominatorsReport{By: ByClass, Groups: []Group{{Name: "A", Retained: 5}, {Name: "B", Retained: 2}}}, 1); len(
		r.Groups) != 1 || r.Groups[0].Change != 4 {
		t.Errorf("%+v", r.Groups)
	}
}
