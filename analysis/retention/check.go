package retention

import (
	"fmt"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/trace/references"
)

// Check says whether a reference listing fits together: what reached objects refer to must be objects of the listing,
// of the types that the fields declare as far as the recording knows them. (Slots of dead objects may lead anywhere.)
type Check struct {
	// The collection before the listing.
	GC uint64 `json:"gc"`
	// Objects that roots reach.
	Reached uint64 `json:"reached"`
	// References of these objects.
	References uint64 `json:"references"`
	// References of these that lead to no listed object.
	Dangling uint64 `json:"dangling"`
	// References of these that lead to an object of another type than the field declares.
	Unfit uint64 `json:"unfit"`
	// Roots that name no listed object.
	Roots uint64 `json:"dangling_roots"`
	// Sampled objects whose places the listing names; an older recording names none.
	Samples uint64 `json:"samples"`
	// Of these, those whose place has no listed object.
	Misplaced uint64 `json:"misplaced_samples"`
	// The first such reference.
	First string `json:"first,omitempty"`
	// Why the listing cannot be read.
	Unreadable string `json:"unreadable,omitempty"`
}

// CheckAll checks each reference listing of a recording that was taken. open gives all blocks from its start.
func CheckAll(open func() reflisting.Source) ([]Check, error) {
	all, err := reflisting.Find(open())
	if err != nil {
		return nil, err
	}
	out := []Check{}
	for _, a := range all {
		if a.Refused != "" {
			continue
		}
		if !a.Whole {
			out = append(out, Check{GC: a.GC, Unreadable: "parts are missing"})
			continue
		}
		l, names, err := reflisting.Read(open(), a.Number)
		var g *graph.Graph
		if err == nil {
			g, err = graph.Build(l, nil)
		}
		if err != nil {
			out = append(out, Check{GC: a.GC, Unreadable: err.Error()})
			continue
		}
		out = append(out, (&Heap{Graph: g, Names: names, About: a}).Check())
	}
	return out, nil
}

// Check checks the listing.
func (h *Heap) Check() Check {
	g := h.Graph
	c := Check{GC: h.About.GC}
	for i := range g.Objects() {
		if _, ok := g.Strength(i); !ok {
			continue
		}
		c.Reached++
		s := g.L.Shape(i)
		for k, t := range g.L.Of(i) {
			if t == 0 {
				continue
			}
			c.References++
			why := ""
			f := s.Slot(k)
			if to, ok := g.Target(t); !ok {
				c.Dangling++
				why = "no object is there"
			} else if x := g.L.Shape(to); !fits(f.Declared, x) && !initLock(f, x) {
				c.Unfit++
				why = fmt.Sprintf("it leads to a %s", graph.Name(x.Name))
			}
			if why != "" && c.First == "" {
				c.First = fmt.Sprintf("%s.%s %s of the object at %s: %s", graph.Name(s.Name), f.Name, f.Declared,
					h.address(i), why)
			}
		}
	}
	for i := range g.L.Roots {
		if g.L.Find(g.L.Roots[i].Target) < 0 {
			c.Roots++
		}
	}
	c.Samples = uint64(len(g.L.Samples))
	for _, s := range g.L.Samples {
		if s.Word >= references.MaxWord || g.L.Find(uint32(s.Word)+1) < 0 {
			c.Misplaced++
		}
	}
	return c
}

// initLock says whether the object is the lock that HotSpot keeps, until a class is initialized, in the field that only
// mirrors of arrays use.
func initLock(f references.Field, s *references.Shape) bool {
	return f.Class == "java/lang/Class" && f.Name == "componentType" && s.Name == "[I"
}

// fits says whether an object may be in a field of a declared type. Which classes extend which is not recorded.
func fits(declared string, s *references.Shape) bool {
	array := s.Kind == references.ObjectArray || s.Kind == references.PrimitiveArray
	switch {
	case declared == "", declared == "Ljava/lang/Object;", declared == "Ljava/lang/Cloneable;",
		declared == "Ljava/io/Serializable;":
		return true
	case len(declared) == 2 && declared[0] == '[':
		return s.Name == declared
	case declared[0] == '[':
		return s.Kind == references.ObjectArray
	case declared == "Ljava/lang/Class;":
		return s.Kind == references.Mirror
	case declared == "Ljava/lang/String;":
		return s.Name == "java/lang/String"
	}
	return !array
}
