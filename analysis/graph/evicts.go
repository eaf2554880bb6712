package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/references"
)

const (
	evictsMost  = 256 // objects of a set that are looked at
	evictsShare = 0.5 // of them that are in two collections, at least
	evictsUp    = 6   // references from an object up to the cell of the collection that holds it
	leastCells  = 16  // slots of an array that is the table of a collection
)

// caches are packages whose collections drop elements by themselves.
var caches = [...]string{"com/github/benmanes/caffeine/", "com/google/common/cache/", "org/ehcache/",
	"net/sf/ehcache/", "org/cache2k/", "com/hazelcast/", "org/infinispan/",
	"org/springframework/util/ConcurrentLruCache"}

// Evicts says by what means the collection that holds a set of objects may drop some of them: the end of "It has", and
// a path or a class; what is "" if none shows. A map with a bound needs an order in which it drops its entries: a
// second collection with the same keys or values, a subclass of LinkedHashMap, or a library. What is in one plain
// collection has no means of its own.
func (g *Graph) Evicts(set []Member) (what string, where ui.Text) {
	of := map[uint32]int{} // an object of the way from a cell to a member: the member
	cells := map[int][2]uint32{}
	weights, whole := map[int]float64{}, 0.0
	for i := 0; i < len(set); i += max(1, len(set)/evictsMost) {
		v := set[i].Object
		if !g.Live(v) || g.parent[v] == 0 {
			continue
		}
		whole += set[i].Weight
		cell, way := g.cellOf(uint32(v))
		if what, where = g.library(cell); what != "" {
			return what, where
		}
		for _, w := range way {
			of[w] = i
		}
		weights[i], cells[i] = set[i].Weight, [2]uint32{cell, uint32(v)}
	}
	second := map[uint32]float64{} // shapes of second cells
	example, twice := map[uint32]uint32{}, map[int]bool{}
	for v := range uint32(len(g.L.Addr)) {
		if !g.Live(int(v)) || !g.cell(v) {
			continue
		}
		for _, t := range g.L.Of(int(v)) {
			if t == 0 || t == dangling {
				continue
			}
			i, ok := of[t-1]
			if !ok || twice[i] || cells[i][0] == v || cells[i][1] == v {
				continue
			}
			twice[i] = true
			code := g.L.Code[v]
			second[code] += weights[i]
			example[code] = v
		}
	}
	for _, code := range slices.Sorted(maps.Keys(second)) { // the same answer each time
		if second[code] < evictsShare*whole {
			continue
		}
		if p, ok := g.PathTo(int(example[code])); ok && len(p.Hops) > 0 {
			return "a second collection with the same elements or keys", p.pattern()
		}
	}
	return "", ""
}

// cell says whether an object is what a collection keeps an element in: a long array, or a node of the JDK.
func (g *Graph) cell(v uint32) bool {
	s := g.L.Shape(int(v))
	if s.Kind == references.ObjectArray {
		return len(g.L.Of(int(v))) >= leastCells
	}
	return strings.HasPrefix(s.Name, "java/util/") &&
		(strings.HasSuffix(s.Name, "Node") || strings.HasSuffix(s.Name, "Entry"))
}

// cellOf gives the cell that holds an object, directly or not, and the objects from there to it, with the others of the
// cell.
func (g *Graph) cellOf(v uint32) (cell uint32, way []uint32) {
	n := uint32(len(g.parent))
	for range evictsUp {
		if g.cell(v) {
			break
		}
		way = append(way, v)
		up := g.parent[v]
		if up == 0 || up > n {
			return v, nil
		}
		v = up - 1
	}
	if !g.cell(v) {
		return v, nil
	}
	if s := g.L.Shape(int(v)); s.Kind != references.ObjectArray {
		for k, t := range g.L.Of(int(v)) {
			switch s.Slot(k).Name {
			case "key", "value", "val", "item":
				if t != 0 && t != dangling {
					way = append(way, t-1)
				}
			}
		}
	}
	return v, way
}

// library says whether what holds a cell is a cache of a library, or a subclass of LinkedHashMap.
func (g *Graph) library(cell uint32) (what string, where ui.Text) {
	entry := g.L.Shape(int(cell)).Name
	v := int(cell)
	for range evictsUp {
		name := g.L.Shape(v).Name
		for _, c := range caches {
			if strings.HasPrefix(name, c) {
				return "means to drop entries, as a cache of a library", ui.Sprintf("%s", Name(name))
			}
		}
		if strings.HasPrefix(entry, "java/util/LinkedHashMap$") && v != int(cell) {
			if g.L.Shape(v).Kind == references.Instance && !strings.HasPrefix(name, "java/") && g.hashed(v) {
				return "means to drop entries, as a subclass of LinkedHashMap may", ui.Sprintf("%s", Name(name))
			}
		}
		if v = g.Dominator(v); v == None {
			break
		}
	}
	return "", ""
}

// hashed says whether an object has the fields of a HashMap.
func (g *Graph) hashed(v int) bool {
	for _, f := range g.L.Shape(v).Fields {
		if f.Class == "java/util/HashMap" || f.Class == "java/util/LinkedHashMap" {
			return true
		}
	}
	return false
}
