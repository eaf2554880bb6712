package retention

import (
	"io"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/references"
)

// PathsReport is the document of `heapcam paths`: how roots reach objects.
type PathsReport struct {
	Head
	// Which objects were asked about.
	Asked string `json:"asked"`
	// How many objects these are.
	Matched int `json:"matched"`
	// The objects by the weakest reference on the best path to them.
	Strengths []StrengthCount `json:"strengths"`
	// Objects that no root reaches.
	Lost int `json:"unreached"`
	// Objects whose paths were looked at, evenly chosen.
	Seen int `json:"seen"`
	// The ways to them, the commonest first, with an example each.
	Ways []Way `json:"ways"`

	ways []graph.Pattern
}

// StrengthCount counts objects by how they are reached.
type StrengthCount struct {
	// strong, soft, final, weak or phantom.
	Strength string `json:"strength"`
	Objects  int    `json:"objects"`
}

// Paths finds how roots reach a set of objects: those that only references of a strength lead to, or all if it is
// empty.
func (h *Heap) Paths(set []graph.Member, asked, strength string) *PathsReport {
	r := &PathsReport{Head: h.head("paths"), Asked: asked, Matched: len(set), Ways: []Way{}}
	counts := make([]int, references.Strengths)
	var want []graph.Member
	for _, m := range set {
		s, ok := h.Graph.Strength(m.Object)
		if !ok {
			r.Lost++
			continue
		}
		counts[s]++
		if strength == "" || s.String() == strength {
			want = append(want, m)
		}
	}
	for s, n := range counts {
		if n > 0 {
			r.Strengths = append(r.Strengths, StrengthCount{references.Strength(s).String(), n})
		}
	}
	r.ways, r.Seen = h.Graph.Ways(want)
	for i := range r.ways {
		r.Ways = append(r.Ways, Way{r.ways[i].Share, h.path(&r.ways[i].Path)})
	}
	return r
}

// WriteText prints the report, with at most top ways, 0: all.
func (r *PathsReport) WriteText(w io.Writer, top int) {
	ui.Fprintf(w, "Paths from the roots to %s: %s in the references after collection %d, %s\n", r.Asked,
		ui.Plural(uint64(r.Matched), "object"), r.GC, ui.Time(r.Time))
	for _, s := range r.Strengths {
		ui.Fprintf(w, "%12d reached by %s references\n", s.Objects, s.Strength)
	}
	if r.Lost > 0 {
		ui.Fprintf(w, "%12d not reached\n", r.Lost)
	}
	ui.Fprintf(w, "\n")
	if r.Seen < r.Matched-r.Lost {
		ui.Fprintf(w, "Shares are of the bytes of %s, evenly chosen or of the strength asked for.\n\n",
			ui.Plural(uint64(r.Seen), "object"))
	}
	for i := range r.ways {
		if top > 0 && i == top {
			ui.Fprintf(w, "%d more ways; --top 0 shows all\n", len(r.ways)-top)
			break
		}
		ui.Beside(w, ui.Sprintf("%7s  ", ui.Share(r.ways[i].Share)), r.ways[i].Path.Text())
	}
	r.writeMissing(w)
}
