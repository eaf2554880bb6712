package retention

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// DominatorsReport is the document of `heapcam dominators`: what retains most. To retain is to be on every path from
// the roots: what an object retains could be freed if it were not there.
type DominatorsReport struct {
	Head
	// What is shown: object, drop, class, loader, package or site.
	By string `json:"by"`
	// The groups, the one that retains most first.
	Groups []Group `json:"groups,omitempty"`
	// The objects, the one that retains most first; by object without the elements of a linked list behind the first.
	Biggest []Big `json:"objects,omitempty"`

	paths []graph.Path
}

// Group is a group of live objects. What they retain together counts each byte once.
type Group struct {
	// Name of the class, class loader, package or site.
	Name string `json:"name"`
	// Number of live objects.
	Objects uint64 `json:"objects"`
	// Bytes of these objects.
	Bytes uint64 `json:"bytes"`
	// Bytes that they retain together.
	Retained uint64 `json:"retained"`
}

// Big is an object that retains much.
type Big struct {
	// Class of the object.
	Class string `json:"class"`
	// Address of the object.
	Address string `json:"address"`
	// Bytes of the object alone.
	Bytes uint64 `json:"bytes"`
	// Bytes that it retains with itself.
	Retained uint64 `json:"retained"`
	// With by=drop: bytes that it retains beside what the largest object below it retains.
	Drop uint64 `json:"drop,omitempty"`
	// strong, soft or final: how it is held.
	Strength string `json:"strength"`
	// The path to it.
	Path Path `json:"path"`
}

// Ways to group: Dominators takes one.
const (
	ByObject  = "object"
	ByDrop    = "drop"
	ByClass   = "class"
	ByLoader  = "loader"
	ByPackage = "package"
	BySite    = "site"
)

// Bys are all of them.
var Bys = []string{ByObject, ByDrop, ByClass, ByLoader, ByPackage, BySite}

// Dominators finds what retains most, at most top objects or groups, 0: all groups. v is the state after the listing's
// collection; only BySite needs it.
func (h *Heap) Dominators(by string, top int, v *heap.View) *DominatorsReport {
	r := &DominatorsReport{Head: h.head("dominators"), By: by}
	if by == ByObject || by == ByDrop {
		r.biggest(h, top)
		return r
	}
	names, group := h.groups(by, v)
	for k, s := range h.Graph.Sums(len(names), group) {
		if s.Objects > 0 {
			r.Groups = append(r.Groups, Group{names[k], s.Objects, s.Bytes, s.Retained})
		}
	}
	slices.SortStableFunc(r.Groups, func(a, b Group) int { return cmp.Compare(b.Retained, a.Retained) })
	if top > 0 && len(r.Groups) > top {
		r.Groups = r.Groups[:top]
	}
	return r
}

// biggest finds the objects that retain most, or of which the retained sizes drop most.
func (r *DominatorsReport) biggest(h *Heap, top int) {
	g := h.Graph
	if top <= 0 || top > 10000 {
		top = 10000
	}
	all := g.Biggest
	if r.By == ByDrop {
		all = g.Drops
	}
	objects := all(top)
	drops := make([]uint64, len(objects))
	if r.By == ByDrop {
		drops = g.Drop(objects)
	}
	for k, i := range objects {
		p, _ := g.PathTo(i)
		s, _ := g.Strength(i)
		r.paths = append(r.paths, p)
		r.Biggest = append(r.Biggest, Big{h.className(i), h.address(i), g.Bytes(i), g.Retained(i), drops[k],
			s.String(), h.path(&p)})
	}
}

// className names the class of an object; of a mirror, with the class that it stands for.
func (h *Heap) className(i int) string {
	s := h.Graph.L.Shape(i)
	if s.Of != "" {
		return fmt.Sprintf("class %s", graph.Name(s.Of))
	}
	return graph.Name(s.Name)
}

// groups gives the names of the groups, and what group an object is in.
func (h *Heap) groups(by string, v *heap.View) (names []string, group func(int) int) {
	at := map[string]int{}
	number := func(name string) int {
		k, ok := at[name]
		if !ok {
			k = len(names)
			at[name] = k
			names = append(names, name)
		}
		return k
	}
	l := h.Graph.L
	if by == BySite {
		return h.bySite(v)
	}
	of := make([]int, len(l.Shapes))
	for i := range l.Shapes {
		s := &l.Shapes[i]
		name := graph.Name(s.Name)
		switch by {
		case ByLoader:
			t := h.Names.Types[uint64(s.Type)]
			if name = "(unknown)"; t.Loader != 0 {
				name = fmt.Sprintf("%s #%d", graph.Name(h.Names.Loaders[t.Loader].Name), t.Loader)
			}
		case ByPackage:
			name = strings.TrimRight(name, "[]")
			name = name[:max(0, strings.LastIndexByte(name, '.'))]
			if name == "" {
				name = "(no package)"
			}
		}
		of[i] = number(name)
	}
	return names, func(i int) int { return of[l.Code[i]] }
}

// bySite groups the sampled objects by the innermost frame of their site, and all others together.
func (h *Heap) bySite(v *heap.View) (names []string, group func(int) int) {
	names = []string{"(not sampled)"}
	at, of := map[string]int{}, map[int]int{}
	v.EachSample(func(addr uint64, s *heap.Sample) {
		i, ok := h.Object(h.Graph.L.Base + addr*8)
		if !ok {
			return
		}
		site := "(site unknown)"
		if frames := sites.Stack(v.Symbols, s.Frame, 1); len(frames) > 0 {
			site = frames[0].String()
		}
		if _, ok := at[site]; !ok {
			at[site] = len(names)
			names = append(names, site)
		}
		of[i] = at[site]
	})
	return names, func(i int) int { return of[i] }
}

// WriteText prints the report.
func (r *DominatorsReport) WriteText(w io.Writer) {
	ui.Fprintf(w, "What retains most in the references after collection %d, %s\n", r.GC, ui.Time(r.Time))
	ui.Fprintf(w, "%s, %s; not reached %s, weakly reached %s\n\n", ui.Plural(r.Objects, "object"), ui.Bytes(r.Bytes),
		ui.Bytes(r.Unreached), ui.Bytes(r.Weak))
	all := r.Bytes - min(r.Bytes, r.Unreached)
	if r.By == ByObject || r.By == ByDrop {
		what := "BYTES"
		if r.By == ByDrop {
			what = "DROP"
		}
		ui.Fprintf(w, "%11s  %8s  %11s  %s\n", "RETAINED", "SHARE", what, "OBJECT AND PATH")
		for i := range r.Biggest {
			x := &r.Biggest[i]
			last := map[string]uint64{ByObject: x.Bytes, ByDrop: x.Drop}[r.By]
			ui.Beside(w, ui.Sprintf("%11s  %8s  %11s  ", ui.Bytes(x.Retained), ui.Part(x.Retained, all),
				ui.Bytes(last)), ui.Sprintf("%s @ %s", x.Class, x.Address))
			ui.Beside(w, "       by ", r.paths[i].Text())
		}
	} else {
		ui.Fprintf(w, "%11s  %8s  %12s  %11s  %s\n", "RETAINED", "SHARE", "OBJECTS", "BYTES", strings.ToUpper(r.By))
		for _, x := range r.Groups {
			ui.Beside(w, ui.Sprintf("%11s  %8s  %12d  %11s  ", ui.Bytes(x.Retained), ui.Part(x.Retained, all),
				x.Objects, ui.Bytes(x.Bytes)), ui.Sprintf("%s", x.Name))
		}
	}
	ui.Fprintf(w, "\n")
	own := ui.Flow("BYTES: its own.")
	if r.By == ByObject {
		own += " Left out: elements of a linked list behind the first."
	}
	if r.By == ByDrop {
		own = "DROP: what it retains beside the largest object below it. What a large drop retains is in many parts."
	}
	ui.Paragraph(w, "", 0, "RETAINED: bytes that would be free if this were gone, its own included. SHARE: of all "+
		"bytes that are reached. "+own)
	r.writeMissing(w)
}

// Child is an object in the dominator tree.
type Child struct {
	// Class of the object.
	Class string `json:"class"`
	// Address of the object.
	Address string `json:"address"`
	// Bytes of the object alone.
	Bytes uint64 `json:"bytes"`
	// Bytes that it retains with itself.
	Retained uint64 `json:"retained"`
}

// Dominated gives the objects that object i dominates directly, those that retain most first, at most top; graph.None
// stands for the roots. It also says how many there are.
func (h *Heap) Dominated(i, top int) (out []Child, count int) {
	g := h.Graph
	var all []int
	for k := range g.Objects() {
		if g.Live(k) && g.Dominator(k) == i {
			all = append(all, k)
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(g.Retained(b), g.Retained(a)) })
	out = []Child{}
	for _, k := range all[:min(len(all), top)] {
		out = append(out, Child{h.className(k), h.address(k), g.Bytes(k), g.Retained(k)})
	}
	return out, len(all)
}
