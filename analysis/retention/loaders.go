package retention

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/references"
)

// LoadersReport is the document of `heapcam loaders`: the class loaders of the heap, and which classes have been loaded
// more than once.
type LoadersReport struct {
	Head
	// The class loaders by their class, those that retain most first.
	Loaders []LoaderClass `json:"loaders"`
	// Names of classes that more than one loader defines, those of most loaders first.
	Duplicates []Duplicate `json:"duplicates"`

	held []*graph.Held
}

// LoaderClass are the class loaders of one class.
type LoaderClass struct {
	// Class of the loaders.
	Class string `json:"class"`
	// Number of loaders.
	Loaders int `json:"loaders"`
	// Of these, loaders that nothing keeps alive.
	Unreached int `json:"unreached"`
	// Number of classes that they have defined.
	Classes int `json:"classes"`
	// Number of live objects of these classes, with the loaders and the class objects.
	Objects uint64 `json:"objects"`
	// Bytes of these objects.
	Bytes uint64 `json:"bytes"`
	// Bytes that they retain together.
	Retained uint64 `json:"retained"`
	// Who holds the loaders, the largest share first. The shares are of the number of loaders.
	Holders []Holder `json:"holders"`
}

// Duplicate is the name of a class that several loaders have defined.
type Duplicate struct {
	// Name of the class.
	Class string `json:"class"`
	// Number of loaders that define it.
	Loaders int `json:"loaders"`
	// Class of one of these loaders.
	Loader string `json:"loader"`
}

// loaderGroups are what Loaders finds in the listing.
type loaderGroups struct {
	of      []int          // by object: 1 + its loader's group
	byClass map[uint32]int // by class number: that
	names   []string
	loaders [][]graph.Member
	classes []int
}

// Loaders finds the class loaders. Those of the boot loader's classes are not among them, because it is no object.
func (h *Heap) Loaders() *LoadersReport {
	g := h.Graph
	r := &LoadersReport{Head: h.head("loaders"), Loaders: []LoaderClass{}, Duplicates: []Duplicate{}}
	x := &loaderGroups{of: make([]int, g.Objects()), byClass: map[uint32]int{}}
	r.duplicates(h, x)
	for i := range x.of {
		if s := g.L.Shape(i); x.of[i] == 0 && s.Kind != references.Mirror {
			x.of[i] = x.byClass[s.Class]
		}
	}
	sums := g.Sums(len(x.names)+1, func(i int) int { return x.of[i] })
	order := make([]int, len(x.names))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sums[b+1].Retained, sums[a+1].Retained) })
	for _, k := range order {
		held, s := g.Holders(x.loaders[k]), sums[k+1]
		c := LoaderClass{Class: x.names[k], Loaders: len(x.loaders[k]), Classes: x.classes[k], Objects: s.Objects,
			Bytes: s.Bytes, Retained: s.Retained, Holders: []Holder{}}
		for _, m := range x.loaders[k] {
			if !g.Live(m.Object) {
				c.Unreached++
			}
		}
		for i := range held.Holders {
			c.Holders = append(c.Holders, h.Holder(&held.Holders[i]))
		}
		r.Loaders, r.held = append(r.Loaders, c), append(r.held, held)
	}
	return r
}

// duplicates finds the loaders with their classes, and counts the names of these.
func (r *LoadersReport) duplicates(h *Heap, x *loaderGroups) {
	g := h.Graph
	at, names := map[string]int{}, map[string]int{}
	for i := range g.Objects() {
		s := g.L.Shape(i)
		if s.Kind != references.Loader {
			continue
		}
		k, ok := at[s.Name]
		if !ok {
			k = len(x.names)
			at[s.Name] = k
			x.names, x.loaders = append(x.names, graph.Name(s.Name)), append(x.loaders, nil)
			x.classes = append(x.classes, 0)
		}
		x.loaders[k] = append(x.loaders[k], graph.Member{Object: i, Weight: 1})
		x.of[i] = k + 1
		for _, t := range g.L.Of(i)[len(s.Fields):] {
			m, ok := g.Target(t)
			if !ok || g.L.Shape(m).Kind != references.Mirror || x.of[m] != 0 {
				continue
			}
			c := g.L.Shape(m)
			x.of[m], x.byClass[c.Class] = k+1, k+1
			if x.classes[k]++; strings.HasPrefix(c.Of, "[") || c.Of == "" {
				continue
			}
			n, ok := names[c.Of]
			if !ok {
				n = len(r.Duplicates)
				names[c.Of] = n
				r.Duplicates = append(r.Duplicates, Duplicate{graph.Name(c.Of), 0, x.names[k]})
			}
			r.Duplicates[n].Loaders++
		}
	}
	delete(x.byClass, 0)
	r.Duplicates = slices.DeleteFunc(r.Duplicates, func(d Duplicate) bool { return d.Loaders < 2 })
	slices.SortStableFunc(r.Duplicates, func(a, b Duplicate) int { return cmp.Compare(b.Loaders, a.Loaders) })
}

// WriteText prints the report, with at most top rows in each table, 0: all.
func (r *LoadersReport) WriteText(w io.Writer, top int) {
	ui.Fprintf(w, "Class loaders in the references after collection %d, %s\n\n", r.GC, ui.Time(r.Time))
	ui.Fprintf(w, "%11s  %8s  %8s  %10s  %s\n", "RETAINED", "LOADERS", "CLASSES", "OBJECTS", "CLASS OF THE LOADERS")
	for i := range r.Loaders {
		if top > 0 && i == top {
			ui.Fprintf(w, "%d more; --top 0 shows all\n", len(r.Loaders)-top)
			break
		}
		x := &r.Loaders[i]
		ui.Beside(w, ui.Sprintf("%11s  %8d  %8d  %10d  ", ui.Bytes(x.Retained), x.Loaders, x.Classes, x.Objects),
			ui.Sprintf("%s", x.Class))
		for _, l := range r.held[i].Lines() {
			ui.Beside(w, ui.Sprintf("       %7s  by ", ui.Share(l.Share)), l.Text)
		}
	}
	ui.Fprintf(w, "\n")
	ui.Paragraph(w, "", 0, "RETAINED: bytes that would be free if these loaders, their classes and the objects of "+
		"these were gone. OBJECTS: of these classes. Below: who holds the loaders.")
	if len(r.Duplicates) > 0 {
		ui.Section(w, "Classes of one name that several loaders have defined")
		ui.Fprintf(w, "%8s  %s\n", "LOADERS", "CLASS, AND CLASS OF ONE OF ITS LOADERS")
		for i, d := range r.Duplicates {
			if top > 0 && i == top {
				ui.Fprintf(w, "%d more; --top 0 shows all\n", len(r.Duplicates)-top)
				break
			}
			ui.Beside(w, ui.Sprintf("%8d  ", d.Loaders), ui.Sprintf("%s, %s", d.Class, d.Loader))
		}
	}
	r.writeMissing(w)
}
