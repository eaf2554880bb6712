package retention

import (
	"github.com/heapcam/heapcam/trace/references"
)

// Keys of how arrays of references and collections use their slots.
const (
	healthEmpty     = "empty"
	healthSparse    = "sparse"
	healthOversized = "oversized"
	healthUsed      = "used"
	healthNone      = "(no array of references, no collection)"
)

// oversized is from how many bytes of unused slots on an array is oversized; a slot has at least slotBytes.
const (
	oversized = 1024
	slotBytes = 4
)

// backing names the field of a collection that leads to its elements: to an array, to the first node, or to another
// collection.
var backing = map[string]string{
	"java/util/ArrayList": "elementData", "java/util/Vector": "elementData", "java/util/Stack": "elementData",
	"java/util/ArrayDeque": "elements", "java/util/PriorityQueue": "queue",
	"java/util/HashMap": "table", "java/util/LinkedHashMap": "table", "java/util/Hashtable": "table",
	"java/util/IdentityHashMap": "table", "java/util/WeakHashMap": "table",
	"java/util/concurrent/ConcurrentHashMap":     "table",
	"java/util/concurrent/CopyOnWriteArrayList":  "array",
	"java/util/concurrent/PriorityBlockingQueue": "queue",
	"java/util/concurrent/ArrayBlockingQueue":    "items",
	"java/util/HashSet":                          "map", "java/util/LinkedHashSet": "map", "java/util/TreeSet": "m",
	"java/util/TreeMap": "root", "java/util/LinkedList": "first",
}

// Health says how object i, an array of references or a collection, uses its slots. It counts references that are not
// null: in a table of chains a slot with a long chain is one.
func (h *Heap) Health(i int) string {
	g := h.Graph
	for range 3 { // a set leads to its map, and that to its table
		s := g.L.Shape(i)
		if s.Kind == references.ObjectArray {
			return slotHealth(g.L.Of(i)[len(s.Fields):])
		}
		field, ok := backing[s.Name]
		if !ok {
			return healthNone
		}
		k := fieldOf(s, field)
		if k < 0 {
			return healthNone
		}
		to, ok := g.Target(g.L.Of(i)[k])
		if !ok {
			return healthEmpty
		}
		if x := g.L.Shape(to); x.Kind != references.ObjectArray && backing[x.Name] == "" {
			return healthUsed // nodes
		}
		i = to
	}
	return healthNone
}

// fieldOf gives the slot of a field, -1 if there is none.
func fieldOf(s *references.Shape, name string) int {
	for k := range s.Fields {
		if s.Fields[k].Name == name {
			return k
		}
	}
	return -1
}

func slotHealth(slots []uint32) string {
	used := 0
	for _, t := range slots {
		if t != 0 {
			used++
		}
	}
	switch {
	case used == 0:
		return healthEmpty
	case used*4 > len(slots):
		return healthUsed
	case (len(slots)-used)*slotBytes >= oversized:
		return healthOversized
	}
	return healthSparse
}
