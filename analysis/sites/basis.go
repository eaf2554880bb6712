package sites

import "github.com/heapcam/heapcam/internal/ui"

// Basis says in the title of a table what the figures of its rows rest on. The figure of a row is exact if each of its
// objects has a sample of its own, as with `--sampling 0` or exact sites. Rows without a known site say so themselves.
func Basis(rows []Row) ui.Flow {
	exact, estimated, drawn := 0, 0, false
	for i := range rows {
		switch r := &rows[i]; {
		case r.Child != "" || r.Proven:
		case r.Samples >= r.Objects && (r.Drawn > 0 || r.ObjectsLow == r.ObjectsHigh):
			exact++
			drawn = drawn || r.Drawn > 0
		default:
			estimated++
		}
	}
	switch {
	case exact == 0:
		return "estimated from samples"
	case estimated > 0:
		return "partly estimated from samples"
	case drawn:
		return "exact, but callers are estimated"
	}
	return "exact"
}

// GrownBasis is Basis of what grew. live are the rows of what lives at the end.
func GrownBasis(grown []GrownRow, live []Row) ui.Flow {
	rows := make([]Row, len(grown))
	for i := range grown {
		g := &grown[i]
		rows[i].ObjectsHigh = 1 // of a site that is not among live nothing more is known
		for k := range live {
			if l := &live[k]; l.SiteID == g.SiteID && l.Class == g.Class && l.Loader == g.Loader {
				rows[i] = *l
			}
		}
		rows[i].Samples, rows[i].Objects = uint64(max(g.Samples, 0)), uint64(max(g.Objects, 0))
	}
	return Basis(rows)
}
