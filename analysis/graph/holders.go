package graph

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/references"
)

// Member is an object of a set, with what it counts: 1, its bytes, or what a sample stands for.
type Member struct {
	Object int
	Weight float64
}

// Held says who holds a set of objects. Shares are parts of the whole set's weight.
type Held struct {
	Objects   int
	Weight    float64
	Holders   []Holder // the largest share first
	Rest      float64  // share of what is held in ways that are too rare to list
	Weak      float64  // share of what weak and phantom references alone lead to
	Unreached float64  // share of what no root reaches
	// Missing is what the listing left out: if it is not empty, what is unreached may be alive.
	Missing []string
}

// Holder holds a part of a set: all paths to that part lead through it.
type Holder struct {
	Share   float64
	Objects int
	// Object is the holder, None if the part is held by many roots or classes in the same way; then Path is empty and
	// Below begins with them.
	Object   int
	Class    string              // of the holder, as Java writes it; empty with None
	Of       string              // if the holder is a class mirror: the class
	Retained uint64              // by the holder, bytes
	Strength references.Strength // of the references that hold the part
	Path     Path                // from a root to the holder
	Below    []Pattern           // ways from it to the part, the commonest first
}

// Pattern is a way that leads to Share of what a holder holds.
type Pattern struct {
	Share    float64
	Path     Path // an example; its text is that of all
	Strength references.Strength
}

// What Holders goes by. The first is how much of a part one object must hold to be looked into further, the second is
// which part of the whole set is worth a line of its own.
const (
	mostly     = 0.8
	noteworthy = 0.05
	maxHolders = 64
	maxBelow   = 3
	maxPaths   = 256 // that the patterns of a part are made from, with at most maxSteps references
	maxSteps   = 1 << 24
	chain      = 8 // as many objects in a row that repeat are a list
)

// Holders finds who holds a set of objects. For each part of the set it goes down the dominator tree as long as one
// object holds most of the part, and stops before the elements of a linked list. Below roots, class loaders, classes
// and threads, which hold unrelated things, the set is divided.
func (g *Graph) Holders(set []Member) *Held {
	h := &Held{Objects: len(set), Missing: g.L.Missing}
	f := &finder{g: g, sum: room.Make[float64](g.room, len(g.vertex)), heavy: room.Make[uint32](g.room, len(g.vertex))}
	for _, m := range set {
		h.Weight += m.Weight
		switch n := g.node[m.Object]; {
		case n != 0:
			f.sum[n] += m.Weight
			f.set = append(f.set, m)
		case g.level[m.Object] == unreached:
			h.Unreached += m.Weight
		default:
			h.Weak += m.Weight
		}
	}
	if h.Weight <= 0 {
		return h
	}
	f.whole = h.Weight
	for v := len(f.sum) - 1; v > 0; v-- {
		up := g.idom[v]
		f.sum[up] += f.sum[v]
		if h := f.heavy[up]; f.sum[v] > 0 && (h == 0 || f.sum[v] >= f.sum[h]) {
			f.heavy[up] = uint32(v)
		}
	}
	f.divide(0)
	f.assign()
	for i := range f.parts {
		f.describe(&f.parts[i], h)
	}
	slices.SortStableFunc(h.Holders, func(a, b Holder) int { return cmp.Compare(b.Share, a.Share) })
	h.merge()
	h.Weak, h.Unreached = h.Weak/h.Weight, h.Unreached/h.Weight
	return h
}

// finder divides a set into parts.
type finder struct {
	g     *Graph
	set   []Member
	whole float64
	sum   []float64 // by node: weight of the set below it
	heavy []uint32  // by node: the child with the largest sum
	parts []part
}

// part is what one node holds, apart from other parts below it.
type part struct {
	node    uint32
	members []Member
	weight  float64
	objects int
}

// divide finds the parts below node top, which divides or is 0, and those below them.
func (f *finder) divide(top uint32) {
	todo := []uint32{top}
	f.parts = append(f.parts, part{node: top})
	for len(todo) > 0 && len(f.parts) < maxHolders {
		top, todo = todo[0], todo[1:]
		for v := int(top) + 1; v < len(f.sum) && len(f.parts) < maxHolders; v++ {
			if f.g.idom[v] != top || f.sum[v] < noteworthy*f.whole {
				continue
			}
			at := f.descend(uint32(v))
			f.parts = append(f.parts, part{node: at})
			if f.divides(at) {
				todo = append(todo, at)
			}
		}
	}
}

// divides says whether what a node holds has little to do with each other.
func (f *finder) divides(v uint32) bool {
	if v == 0 {
		return true
	}
	s := f.g.L.Shape(int(f.g.vertex[v]))
	return s.Kind == references.Mirror || s.Kind == references.Loader || s.Name == "java/lang/Thread"
}

// descend goes down from v as long as one child holds most of what v holds.
func (f *finder) descend(v uint32) uint32 {
	g, part := f.g, f.sum[v]
	code := func(v uint32) uint32 { return g.L.Code[g.vertex[v]] }
	var way [chain * 4]uint32 // the nodes down to v, as a ring
	var same [4]int           // by period: how often the shape is that of so many nodes before
	way[0] = v
	for depth := 1; ; depth++ {
		w := f.heavy[v]
		if w == 0 || f.sum[w] < mostly*part {
			return v
		}
		v = w
		way[depth%len(way)] = v
		for p := 1; p < len(same) && p <= depth; p++ {
			before := way[(depth-p)%len(way)]
			if code(v) != code(before) {
				same[p] = 0
				continue
			}
			same[p]++
			first := depth - chain*p + 1 // of the objects that repeat
			if same[p] >= chain*p-p && f.sum[v] < f.sum[way[first%len(way)]] {
				return way[max(0, first-1)%len(way)]
			}
		}
	}
}

// assign gives each member to the part nearest above it.
func (f *finder) assign() {
	owner := room.Make[uint32](f.g.room, len(f.sum)) // by node: its part
	for i, p := range f.parts {
		owner[p.node] = uint32(i)
	}
	for v := 1; v < len(owner); v++ {
		if owner[v] == 0 {
			owner[v] = owner[f.g.idom[v]]
		}
	}
	for _, m := range f.set {
		p := &f.parts[owner[f.g.node[m.Object]]]
		p.weight += m.Weight
		p.objects++
	}
	for i := range f.parts { // an even choice of members
		f.parts[i].members = make([]Member, 0, min(f.parts[i].objects, maxPaths))
	}
	seen := make([]int, len(f.parts))
	for _, m := range f.set {
		i := owner[f.g.node[m.Object]]
		p := &f.parts[i]
		if k := len(p.members); k < maxPaths && seen[i]*maxPaths >= k*p.objects {
			p.members = append(p.members, m)
		}
		seen[i]++
	}
}

// describe adds a part to h: one that divides by its patterns, each as if it were a holder.
func (f *finder) describe(p *part, h *Held) {
	if p.objects == 0 {
		return
	}
	g, share := f.g, p.weight/f.whole
	at := None
	if !f.divides(p.node) {
		at = int(g.vertex[p.node])
	}
	below := f.patterns(p, at)
	if at == None {
		rest := f.patternsAsHolders(p, below, h)
		if p.node == 0 || rest < noteworthy {
			h.Rest += rest
			return
		}
		at, share, below = int(g.vertex[p.node]), rest, nil
	}
	if share < noteworthy {
		h.Rest += share
		return
	}
	for len(below) > maxBelow || len(below) > 1 && below[len(below)-1].Share < noteworthy {
		below = below[:len(below)-1]
	}
	path, _ := g.PathTo(at)
	strength, _ := g.Strength(p.members[0].Object)
	shape := g.L.Shape(at)
	x := Holder{Share: share, Objects: p.objects, Object: at, Class: Name(shape.Name), Retained: g.Retained(at),
		Strength: strength, Path: path, Below: below}
	if shape.Of != "" {
		x.Of = Name(shape.Of)
	}
	h.Holders = append(h.Holders, x)
}

// patternsAsHolders adds the common patterns of a part to h, and gives the share of the others.
func (f *finder) patternsAsHolders(p *part, below []Pattern, h *Held) (rest float64) {
	share := p.weight / f.whole
	for _, b := range below {
		x := b.Share * share
		if x < noteworthy {
			rest += x
			continue
		}
		h.Holders = append(h.Holders, Holder{Share: x, Objects: int(b.Share*float64(p.objects) + 0.5), Object: None,
			Strength: b.Strength, Below: []Pattern{{1, b.Path, b.Strength}}})
	}
	return rest
}

// patterns gives the ways from an object to a part, the commonest first; from None: from the roots.
func (f *finder) patterns(p *part, from int) []Pattern {
	at := map[ui.Text]int{}
	var out []Pattern
	total, steps := 0.0, 0
	for _, m := range p.members {
		path, n, ok := f.g.pathFrom(from, m.Object)
		if steps += n; !ok {
			continue
		}
		t := path.pattern()
		i, had := at[t]
		if !had {
			i = len(out)
			at[t] = i
			strength, _ := f.g.Strength(m.Object)
			out = append(out, Pattern{0, path, strength})
		}
		out[i].Share += m.Weight
		if total += m.Weight; steps > maxSteps {
			break
		}
	}
	for i := range out {
		out[i].Share /= total
	}
	slices.SortStableFunc(out, func(a, b Pattern) int { return cmp.Compare(b.Share, a.Share) })
	return out
}

// merge makes one of holders without an object that are called alike.
func (h *Held) merge() {
	at := map[ui.Text]int{}
	var out []Holder
	for _, x := range h.Holders {
		if x.Object == None {
			t := x.Below[0].Path.pattern()
			if i, had := at[t]; had {
				out[i].Share += x.Share
				out[i].Objects += x.Objects
				continue
			}
			at[t] = len(out)
		}
		out = append(out, x)
	}
	h.Holders = out
}
