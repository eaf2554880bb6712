package lifetimes

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// Report is what `heapcam lifetimes` shows. Lifetimes are in bytes: what the program allocated while the object lived.
type Report struct {
	Schema    string `json:"schema"`
	Depth     string `json:"depth"` // of the recording
	By        string `json:"by"`    // what the rows are: type, size or site
	Allocated uint64 `json:"allocated_bytes"`
	Objects   uint64 `json:"objects"` // that a collection saw, or that are large
	Unseen    uint64 `json:"unseen"`  // objects that died before any collection saw them; 0 at depth survivors
	// allocated bytes that are in no row, because no later heap state says what became of them
	LeftOut uint64 `json:"left_out_bytes"`
	// lifetimes of all objects
	All  Row   `json:"all"`
	Rows []Row `json:"rows"`          // the most bytes first
	Left int   `json:"rows_left_out"` // by --top
}

// Row is the lifetimes of a group. Shares and quantiles are of its bytes.
type Row struct {
	Name  string             `json:"name"`
	Site  []sites.StackFrame `json:"site,omitempty"`
	Bytes uint64             `json:"bytes"` // that were allocated
	// lifetime that half of the bytes do not reach; null: the recording is too short to say
	Median *uint64 `json:"median"`
	// lifetime that 90 % of the bytes do not reach; null: the recording is too short to say
	P90 *uint64 `json:"p90"`
	// lifetime that 99 % of the bytes do not reach; null: the recording is too short to say
	P99   *uint64 `json:"p99"`
	Curve []Point `json:"curve"` // one an octave of age
}

// Point is a point of a survival curve.
type Point struct {
	Age   uint64  `json:"age"`   // bytes
	Alive float64 `json:"alive"` // share that lives longer
}

// Make describes the lifetimes by type, size or site; of the groups, the top ones (0: all). r is the replay that the
// tape was read with.
func (t *Tape) Make(r *heap.Symbols, by string, top int) *Report {
	out := &Report{Schema: "heapcam.lifetimes/1", Depth: "survivors", By: by, Allocated: word * t.End(),
		LeftOut: word * t.LeftOut,
		Objects: uint64(t.Len()), All: row("all objects", &t.All), Rows: []Row{}}
	if t.Full {
		out.Depth = "full"
	}
	for i := range t.Epochs {
		out.Unseen += t.Epochs[i].UnseenObjects
	}
	type group struct {
		name  string
		frame uint64
		tally *Tally
	}
	var groups []group
	switch by {
	case "size":
		for i := range t.Size {
			groups = append(groups, group{name: sizeName(i), tally: &t.Size[i].Tally})
		}
	case "site":
		type key struct{ typ, frame uint64 }
		tallies := map[key]*Tally{}
		for i := range t.Samples {
			s := &t.Samples[i]
			k := key{s.Type, s.Frame}
			if tallies[k] == nil {
				tallies[k] = &Tally{}
				groups = append(groups, group{t.Names(uint32(s.Type)), s.Frame, tallies[k]})
			}
			lo, hi := s.Ages()
			tallies[k].Add(lo, hi, s.Weight*float64(s.Words))
		}
	default:
		for typ, g := range t.By {
			groups = append(groups, group{name: t.Names(typ), tally: &g.Tally})
		}
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return g.tally.Weight() == 0 })
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.tally.Weight(), a.tally.Weight()), cmp.Compare(a.name, b.name),
			cmp.Compare(a.frame, b.frame))
	})
	if top > 0 && len(groups) > top {
		out.Left = len(groups) - top
		groups = groups[:top]
	}
	for _, g := range groups {
		x := row(g.name, g.tally)
		if by == "site" {
			x.Site = sites.Stack(r, g.frame, sites.MaxFrames)
		}
		out.Rows = append(out.Rows, x)
	}
	return out
}

func row(name string, t *Tally) Row {
	c := t.Curve()
	x := Row{Name: name, Bytes: word * uint64(t.Weight()), Curve: []Point{}}
	for q, to := range map[float64]**uint64{0.5: &x.Median, 0.9: &x.P90, 0.99: &x.P99} {
		if age, ok := c.Quantile(q); ok {
			n := word * uint64(age)
			*to = &n
		}
	}
	for i := 1; i <= c.Reach+1 && i < Bins; i += binsPerOctave {
		x.Curve = append(x.Curve, Point{word * uint64(Edge(i)), c.Alive[i]})
	}
	return x
}

// At gives the share that lives longer than an age in bytes, of the last point of the curve that is not beyond it;
// false if the curve does not go so far.
func (x *Row) At(age uint64) (float64, bool) {
	for i := len(x.Curve) - 1; i >= 0; i-- {
		if x.Curve[i].Age <= age {
			return x.Curve[i].Alive, i < len(x.Curve)-1 || x.Curve[i].Age == age
		}
	}
	return 1, len(x.Curve) > 0
}
