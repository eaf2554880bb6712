package sites

import (
	"sort"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// ClassRow is a class of a histogram.
type ClassRow struct {
	Class   string `json:"class"`
	VMClass string `json:"vm_class,omitempty"` // of hidden and generated classes
	Loader  string `json:"loader,omitempty"`   // where two classes share a name
	Objects uint64 `json:"objects"`
	Bytes   uint64 `json:"bytes"`
	Filler  bool   `json:"filler,omitempty"`
	// Of these, what nothing kept alive when references were listed after the collection.
	DeadObjects uint64 `json:"dead_objects,omitempty"`
	// Bytes of these dead objects.
	DeadBytes uint64 `json:"dead_bytes,omitempty"`
}

// Histogram is the whole of `heapcam histogram`.
type Histogram struct {
	Schema  string     `json:"schema"`
	GC      uint64     `json:"gc"`
	JVMGC   uint64     `json:"jvm_gc"`
	Time    time.Time  `json:"time"`
	Objects uint64     `json:"objects"`
	Bytes   uint64     `json:"bytes"`
	Classes []ClassRow `json:"classes"`
	Sites   []Row      `json:"sites,omitempty"`
	// what is known of the sites, as `heapcam coverage` says it
	Coverage *Coverage `json:"coverage,omitempty"`
	// Uncompacted says that dead objects of regions that G1 did not compact may count.
	Uncompacted bool `json:"may_count_dead,omitempty"`
	// Reached says that references were listed after the collection, so that dead objects are known.
	Reached bool `json:"reached,omitempty"`
	// Of all objects, what nothing kept alive then.
	DeadObjects uint64 `json:"dead_objects,omitempty"`
	// Bytes of these dead objects.
	DeadBytes uint64 `json:"dead_bytes,omitempty"`
}

// MakeHistogram counts the state of r, which is positioned after c, by class; the largest first. dead, by type, is what
// nothing keeps alive; nil: it is not known.
func MakeHistogram(r *heap.View, c *heap.Collection, dead map[uint32]heap.Count) *Histogram {
	h := &Histogram{Schema: "heapcam.histogram/1", GC: c.GC, JVMGC: c.JVMGC,
		Time: collection.Wall(r.Symbols, c.End()), Classes: []ClassRow{}, Uncompacted: r.Uncompacted,
		Reached: dead != nil}
	at := map[Class]int{}
	var classes []Class
	for id, n := range r.Totals.PerType() {
		if n.Objects == 0 {
			continue
		}
		k := ClassOf(r.Symbols, uint32(id))
		i, ok := at[k]
		if !ok {
			i = len(classes)
			at[k] = i
			classes = append(classes, k)
			h.Classes = append(h.Classes,
				ClassRow{Class: k.Name, VMClass: k.VM, Filler: r.Types[uint64(id)].Flags&trace.TypeFiller != 0})
		}
		h.Classes[i].Objects += n.Objects
		h.Classes[i].Bytes += n.Bytes
		d := dead[uint32(id)]
		d.Objects, d.Bytes = min(d.Objects, n.Objects), min(d.Bytes, n.Bytes)
		h.Classes[i].DeadObjects += d.Objects
		h.Classes[i].DeadBytes += d.Bytes
		h.DeadObjects += d.Objects
		h.DeadBytes += d.Bytes
		h.Objects += n.Objects
		h.Bytes += n.Bytes
	}
	shared := Loaders(r.Symbols, classes)
	for i, k := range classes {
		h.Classes[i].Loader = shared[k]
	}
	sort.Slice(h.Classes, func(i, j int) bool {
		a, b := &h.Classes[i], &h.Classes[j]
		if a.Bytes != b.Bytes {
			return a.Bytes > b.Bytes
		}
		return a.Class+a.VMClass+a.Loader < b.Class+b.VMClass+b.Loader
	})
	return h
}
