// Package graph answers who holds what: it makes a graph of a reference listing, finds what the roots reach and how
// firmly, the dominators, the retained sizes, and the paths from the roots.
//
// Terms. The *reach* of an object is the strength of its weakest link on the best path from a root: strong, soft,
// final, weak, phantom, or none. An edge *counts* if it gives its target that reach: a weak reference to an object that
// is also held strongly holds nothing. An object *dominates* another one if all paths of edges that count lead through
// it; then it *retains* it. Objects that are reached weakly at best are retained by nothing.
//
// Invariants: no function recurses, and none takes more memory than a fixed number of bytes an object, whatever the
// listing says. A path that this package gives always leads through the dominators of its end.
//
// Memory: about 90 bytes an object at the peak with 2.5 slots an object, the listing included (PeakSize). If that is
// more than there is, the arrays can be in a file that is mapped: package room.
package graph

import (
	"errors"
	"fmt"

	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
)

// Graph is a reference listing as a graph. Objects are numbered in the order of the listing. It is only read after
// Build, and safe for concurrent use.
type Graph struct {
	// L is the listing. Its Slots are numbers of objects + 1 now; 0: null; dangling: no object is there. Objects of
	// classes that may be unloaded have one more field, references.ClassField.
	L *references.Listing
	// Dangling counts slots of reached objects that point at no listed object, by shape.
	Dangling map[uint32]uint64

	roots  []references.Root // as in L, but with known targets alone, the lasting ones first
	target []uint32          // object of each root
	loose  []uint64          // a bit an object: its shape has a field that is not strong
	leaf   []uint64          // a bit an object: it has no slots; for Build
	level  []uint8           // by object: how it is reached
	parent []uint32          // by object: 0 not reached, object + 1, or n + 1 + root: the step before it on its path
	node   []uint32          // by object: its node in the dominator tree, 0 if it has none
	vertex []uint32          // by node from 1: its object; nodes are in preorder of the depth-first search
	idom   []uint32          // by node: its dominator, 0: the roots together
	size   []uint32          // by node: what it retains with itself, words
	gone   []uint64          // a bit an object: a cleaner or entry that holds nothing but others; nil: all count
	room   *room.Room        // where large arrays are; nil: in memory
}

// dangling is a slot that points at no listed object.
const dangling = ^uint32(0)

// None is an object that does not exist.
const None = -1

// ErrTooLarge says that a listing is too large for this package.
var ErrTooLarge = errors.New("the reference listing is too large for a graph")

// Build makes a graph of a listing and takes it over: the slots are replaced. It calls progress, if it is not nil, with
// the name of each step. Errors: of a listing that is not sound (references.Listing.Check), ErrTooLarge.
func Build(l *references.Listing, progress func(step string)) (*Graph, error) {
	return BuildIn(nil, l, progress)
}

// BuildIn is Build with the large arrays in r, which must not be closed as long as the graph is used. nil: in memory.
func BuildIn(r *room.Room, l *references.Listing, progress func(step string)) (*Graph, error) {
	if progress == nil {
		progress = func(string) {}
	}
	g, err := follow(r, l, progress)
	if err != nil {
		return nil, err
	}
	progress("finding the dominators")
	g.dominate()
	g.leaf = nil // answers do not need it
	progress("adding up retained sizes")
	g.retain()
	return g, nil
}

// Levels gives for each object of a listing how it is reached, in less time and memory than Build, which it is like in
// all else.
func Levels(l *references.Listing) ([]Level, error) {
	g, err := follow(nil, l, func(string) {})
	if err != nil {
		return nil, err
	}
	out := make([]Level, len(g.level))
	for i, at := range g.level {
		out[i] = levelOf(at)
	}
	if gone := g.spent(); gone != nil {
		g.gone = gone
		g.reach()
		for i, at := range g.level {
			if out[i] == Kept && (g.isGone(uint32(i)) || levelOf(at) != Kept) {
				out[i] = Ending
			}
		}
	}
	return out, nil
}

// levelOf is the Level of a level of reach.
func levelOf(at uint8) Level {
	switch {
	case at == unreached:
		return Unreached
	case at > levelFinal:
		return Weakly
	}
	return Kept
}

// Level says whether something keeps an object alive.
type Level uint8

// Levels: Kept by strong, soft or final references; Weakly reached by weak and phantom references alone. Ending is a
// cleaner whose object is dead, an entry whose weak key is, or what such ones alone keep: it goes when a collection
// finds that.
const (
	Kept Level = iota
	Weakly
	Unreached
	Ending
)

// follow makes a graph without dominators.
func follow(r *room.Room, l *references.Listing, progress func(step string)) (*Graph, error) {
	progress("checking the listing")
	if err := l.Check(); err != nil {
		return nil, err
	}
	// addClasses adds at most one slot an object.
	if len(l.Addr) > MaxObjects || uint64(len(l.Slots))+uint64(len(l.Addr))+uint64(len(l.Roots)) >= uint64(dangling) {
		return nil, fmt.Errorf("%w: %d objects, %d slots", ErrTooLarge, len(l.Addr), len(l.Slots))
	}
	addClasses(r, l)
	g := &Graph{L: l, Dangling: map[uint32]uint64{}, room: r}
	g.setLoose()
	g.setLeaf()
	progress("resolving the references")
	places := newPlaces(r, l.Addr)
	places.resolve(l.Slots)
	g.setRoots(places)
	room.Free(r, places.group)
	progress("following the references")
	g.reach()
	return g, nil
}

// setRoots keeps the roots with a known target, those that last before those of running frames.
func (g *Graph) setRoots(p *places) {
	for _, frames := range []bool{false, true} {
		for _, r := range g.L.Roots {
			if passing(r.Kind) == frames && r.Target != 0 {
				if i := p.find(r.Target - 1); i != 0 {
					g.roots, g.target = append(g.roots, r), append(g.target, i-1)
				}
			}
		}
	}
}

// setLoose marks the objects whose shape has a field that is not strong.
func (g *Graph) setLoose() {
	shapes := make([]bool, len(g.L.Shapes))
	for i := range shapes {
		for _, f := range g.L.Shapes[i].Fields {
			shapes[i] = shapes[i] || f.Strength != references.Strong
		}
	}
	g.loose = make([]uint64, (len(g.L.Code)+63)/64)
	for i, c := range g.L.Code {
		if shapes[c] {
			g.loose[i/64] |= 1 << (i % 64)
		}
	}
}

// setLeaf marks the objects without slots. About half of all objects are, and to know it saves the searches a look at
// each of them.
func (g *Graph) setLeaf() {
	first := g.L.First
	g.leaf = make([]uint64, (len(g.L.Addr)+63)/64)
	for i := range g.L.Addr {
		if first[i] == first[i+1] {
			g.leaf[i/64] |= 1 << (i % 64)
		}
	}
}

// isLeaf says whether object v has no slots.
func (g *Graph) isLeaf(v uint32) bool { return g.leaf[v/64]>>(v%64)&1 != 0 }

// isLoose says whether object v has a field that is not strong.
func (g *Graph) isLoose(v uint32) bool { return g.loose[v/64]>>(v%64)&1 != 0 }

// passing says whether a root is gone when a method returns.
func passing(k references.RootKind) bool {
	return k == references.StackLocal || k == references.JNILocal
}

// Target gives the object that a slot of L leads to, or false if it is null or leads to none.
func (g *Graph) Target(slot uint32) (int, bool) { return int(slot) - 1, slot != 0 && slot != dangling }

// Objects gives the number of objects.
func (g *Graph) Objects() int { return len(g.L.Addr) }

// Strength gives how firmly object i is reached. It is false if no path leads to it.
func (g *Graph) Strength(i int) (references.Strength, bool) {
	l := g.level[i]
	return levelStrength[l], l != unreached
}

// Live says whether something keeps object i alive: a path of strong, soft and final references. Where the listing is
// complete (references.Listing.Missing), all other objects are garbage that has not been collected yet, or are held by
// weak and phantom references alone.
func (g *Graph) Live(i int) bool { return g.level[i] <= levelFinal }

// Bytes gives the size of object i.
func (g *Graph) Bytes(i int) uint64 { return uint64(g.L.Words[i]) * 8 }

// Retained gives the bytes that object i retains with itself, 0 if nothing keeps it alive.
func (g *Graph) Retained(i int) uint64 { return uint64(g.size[g.node[i]]) * 8 * b2u(g.node[i] != 0) }

// Dominator gives the object that dominates object i; None if it is the roots together, or if i has no dominator.
func (g *Graph) Dominator(i int) int {
	n := g.node[i]
	if n == 0 || g.idom[n] == 0 {
		return None
	}
	return int(g.vertex[g.idom[n]])
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
