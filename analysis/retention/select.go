package retention

import (
	"strings"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// OfClass gives all objects of the classes with this name: as Java writes it, without its package, or without some or
// all of its outer classes too. Each counts with its bytes.
func (h *Heap) OfClass(name string) (out []graph.Member) {
	l := h.Graph.L
	want := make([]bool, len(l.Shapes))
	whole := false
	for i := range l.Shapes {
		want[i] = graph.Name(l.Shapes[i].Name) == name
		whole = whole || want[i]
	}
	for i := range l.Shapes {
		full := graph.Name(l.Shapes[i].Name)
		own := full[strings.LastIndexByte(full, '.')+1:]
		want[i] = want[i] || !whole && (graph.Simple(l.Shapes[i].Name) == name || own == name ||
			strings.HasSuffix(own, "$"+name))
	}
	for i, c := range l.Code {
		if want[c] {
			out = append(out, graph.Member{Object: i, Weight: float64(h.Graph.Bytes(i))})
		}
	}
	return out
}

// All gives all objects, each with its bytes.
func (h *Heap) All() []graph.Member {
	out := make([]graph.Member, h.Graph.Objects())
	for i := range out {
		out[i] = graph.Member{Object: i, Weight: float64(h.Graph.Bytes(i))}
	}
	return out
}

// AllLive gives all objects that something keeps, or that only weak and phantom references lead to, each with its
// bytes: no garbage, of which eden has much.
func (h *Heap) AllLive() (out []graph.Member) {
	for _, m := range h.All() {
		if _, ok := h.Graph.Strength(m.Object); ok {
			out = append(out, m)
		}
	}
	return out
}

// At gives the objects at addresses, in words from the heap base; those that are not listed are left out.
func (h *Heap) At(words []uint64) (out []graph.Member) {
	for _, w := range words {
		if i, ok := h.Object(h.Graph.L.Base + w*8); ok {
			out = append(out, graph.Member{Object: i, Weight: float64(h.Graph.Bytes(i))})
		}
	}
	return out
}

// OfSite gives those of sampled objects that were allocated at a site: one of whose frames contains site as it is
// printed, package.Class.method(File.java:1). Each counts with the bytes that it stands for.
func (h *Heap) OfSite(names *heap.Symbols, all []Placed, site string) (out []graph.Member) {
	matches := map[uint64]bool{}
	for _, p := range all {
		m, known := matches[p.Sample.Frame]
		if !known {
			for _, f := range sites.Stack(names, p.Sample.Frame, sites.MaxFrames) {
				m = m || strings.Contains(f.String(), site)
			}
			matches[p.Sample.Frame] = m
		}
		if x, ok := h.member(p); m && ok {
			out = append(out, x)
		}
	}
	return out
}

// member gives a sampled object of the listing with the bytes that it stands for.
func (h *Heap) member(p Placed) (graph.Member, bool) {
	i, ok := h.Object(h.Graph.L.Base + p.Word*8)
	if !ok {
		return graph.Member{}, false
	}
	return graph.Member{Object: i, Weight: p.Sample.Weight * float64(h.Graph.Bytes(i))}, true
}

// SampledMember is a sampled object with the number of the collection before which it was born.
type SampledMember struct {
	graph.Member
	Birth uint64
}

// SampledBy gives sampled objects by the frame that they were allocated in, as OfSite does.
func (h *Heap) SampledBy(all []Placed) map[uint64][]SampledMember {
	out := map[uint64][]SampledMember{}
	for _, p := range all {
		if m, ok := h.member(p); ok {
			out[p.Sample.Frame] = append(out[p.Sample.Frame], SampledMember{m, p.Sample.Birth})
		}
	}
	return out
}
