package graph

import "github.com/heapcam/heapcam/trace/references"

// A cleaner of the JDK is a phantom reference that a static list holds until a collection finds its object dead. So a
// listing always shows it as held. If its object is dead, it will be freed with it, and nothing keeps it.

// cleanerClasses are the classes that make a cleaner of their subclasses, too.
var cleanerClasses = map[string]bool{"sun/misc/Cleaner": true, "jdk/internal/ref/Cleaner": true,
	"jdk/internal/ref/PhantomCleanable": true}

// listsCleaners are the fields of a cleaner that lead to other cleaners.
var listsCleaners = map[string]bool{"prev": true, "next": true, "list": true, "node": true}

// spent finds the cleaners whose object is dead.
func (g *Graph) spent() map[uint32]bool {
	referent := make([]int, len(g.L.Shapes)) // slot of each shape, -1: no cleaner
	any := false
	for i := range g.L.Shapes {
		referent[i] = cleaned(&g.L.Shapes[i])
		any = any || referent[i] >= 0
	}
	if !any {
		return nil
	}
	out := map[uint32]bool{}
	for i, code := range g.L.Code {
		k := referent[code]
		if k < 0 || !g.Live(i) || k >= len(g.L.Of(i)) {
			continue
		}
		if t := g.L.Of(i)[k]; t != 0 && (t == dangling || !g.Live(int(t-1))) {
			out[uint32(i)] = true
		}
	}
	return out
}

// cleaned gives the slot of a cleaner's object, -1 if a shape is no cleaner's.
func cleaned(s *references.Shape) int {
	if s.Kind != references.Reference {
		return -1
	}
	is, at := cleanerClasses[s.Name], -1
	for k, f := range s.Fields {
		is = is || cleanerClasses[f.Class]
		if f.Strength == references.Phantom {
			at = k
		}
	}
	if !is {
		return -1
	}
	return at
}
