package graph

import (
	"slices"

	"github.com/heapcam/heapcam/trace/references"
)

// A cleaner of the JDK is a phantom reference that a static list holds until a collection finds its object dead. So a
// listing always shows it as held. If its object is dead, it will be freed with it, and nothing keeps it.

// cleanerClasses are the classes that make a cleaner of their subclasses, too.
var cleanerClasses = map[string]bool{"sun/misc/Cleaner": true, "jdk/internal/ref/Cleaner": true,
	"jdk/internal/ref/PhantomCleanable": true}

// An entry of a map whose key is a weak reference is the same: when a collection finds the key's object dead, the map
// hears of it, and drops the entry.

// listsSpent are the fields of a cleaner that lead to other cleaners, and those of an entry that lead to other entries.
var listsSpent = map[string]bool{"prev": true, "next": true, "list": true, "node": true, "parent": true, "left": true,
	"right": true, "before": true, "after": true}

// entries are the JDK's entries of maps with a field key; weakEntries are themselves weak references to their key.
var (
	entries = map[string]bool{"java/util/HashMap$Node": true, "java/util/HashMap$TreeNode": true,
		"java/util/LinkedHashMap$Entry": true, "java/util/Hashtable$Entry": true,
		"java/util/concurrent/ConcurrentHashMap$Node":     true,
		"java/util/concurrent/ConcurrentHashMap$TreeNode": true}
	weakEntries = map[string]bool{"java/util/WeakHashMap$Entry": true,
		"java/lang/ThreadLocal$ThreadLocalMap$Entry": true}
)

// spent finds the cleaners whose object is dead, and the entries of maps whose key is a weak reference to a dead object
// that no collection has cleared yet: a bit an object, nil if there is none. What a collection has cleared counts: a
// map that nobody looks after keeps it.
func (g *Graph) spent() (out []uint64) {
	const none = -1
	referent, key := make([]int, len(g.L.Shapes)), make([]int, len(g.L.Shapes)) // slot of each shape
	any := false
	for i := range g.L.Shapes {
		s := &g.L.Shapes[i]
		referent[i], key[i] = cleaned(s), none
		if s.Kind == references.Reference && weakEntries[s.Name] {
			referent[i] = weakly(s)
		}
		if entries[s.Name] {
			key[i] = slices.IndexFunc(s.Fields, func(f references.Field) bool { return f.Name == "key" })
		}
		any = any || referent[i] >= 0 || key[i] >= 0
	}
	if !any {
		return nil
	}
	// dead says whether slot k of a live object is a reference to one that is not live.
	dead := func(i, k int) bool {
		if k < 0 || !g.Live(i) || k >= len(g.L.Of(i)) {
			return false
		}
		t := g.L.Of(i)[k]
		return t != 0 && (t == dangling || !g.Live(int(t-1)))
	}
	for i, code := range g.L.Code {
		spent := dead(i, referent[code])
		if k := key[code]; k >= 0 && g.Live(i) && k < len(g.L.Of(i)) {
			if t := g.L.Of(i)[k]; t != 0 && t != dangling {
				if s := g.L.Shape(int(t - 1)); s.Kind == references.Reference {
					spent = dead(int(t-1), weakly(s))
				}
			}
		}
		if spent && out == nil {
			out = make([]uint64, (len(g.L.Code)+63)/64)
		}
		if spent {
			out[i/64] |= 1 << (i % 64)
		}
	}
	return out
}

// isGone says whether an object is spent.
func (g *Graph) isGone(v uint32) bool { return g.gone != nil && g.gone[v/64]>>(v%64)&1 != 0 }

// weakly gives the slot of what a shape refers to weakly, -1 if there is none.
func weakly(s *references.Shape) int {
	return slices.IndexFunc(s.Fields, func(f references.Field) bool {
		return f.Strength == references.Weak || f.Strength == references.Phantom
	})
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
