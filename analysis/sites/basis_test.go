package sites

import "testing"

// TestBasis: a title calls figures estimates only if they are.
func TestBasis(t *testing.T) {
	exact := Row{Class: "A", SiteID: "1", Samples: 9, Objects: 9, ObjectsLow: 9, ObjectsHigh: 9}
	drawn := Row{Class: "B", SiteID: "2", Samples: 9, Objects: 9, ObjectsLow: 1, ObjectsHigh: 9, Drawn: 8}
	sampled := Row{Class: "C", SiteID: "3", Samples: 9, Objects: 900, ObjectsLow: 400, ObjectsHigh: 1600}
	few := Row{Class: "D", SiteID: "4", Samples: 9, Objects: 9, ObjectsLow: 9, ObjectsHigh: 12}
	none := Row{Class: "B", Child: SiteUnknown, Objects: 7, ObjectsHigh: 7}
	for _, c := range []struct {
		want string
		rows []Row
	}{
		{"exact", []Row{exact, none}},
		{"exact, but callers are estimated", []Row{drawn, exact, none}},
		{"partly estimated from samples", []Row{drawn, sampled}},
		{"estimated from samples", []Row{sampled, few, none}},
		{"estimated from samples", nil},
	} {
		if got := string(Basis(c.rows)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.rows, got, c.want)
		}
	}
	grown := func(class, id string, samples, objects int64) GrownRow {
		return GrownRow{Class: class, SiteID: id, Samples: samples, Objects: objects}
	}
	live := []Row{exact, drawn, sampled}
	for _, c := range []struct {
		want string
		rows []GrownRow
	}{
		{"exact, but callers are estimated", []GrownRow{grown("A", "1", 5, 5), grown("B", "2", 4, 4)}},
		{"partly estimated from samples", []GrownRow{grown("A", "1", 5, 5), grown("B", "2", 4, 6)}},
		{"estimated from samples", []GrownRow{grown("C", "3", 1, 100), grown("E", "5", 1, 1)}},
	} {
		if got := string(GrownBasis(c.rows, live)); got != c.want {
			t.Errorf("%+v: %s, want %s", c.rows, got, c.want)
		}
	}
}
