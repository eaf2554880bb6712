// Package retention answers questions of a reference listing in a recording: who holds objects, on which paths roots
// reach them, and what retains most. It joins package graph with the names and samples of the recording, and makes the
// reports of `heapcam holders`, `paths` and `dominators`.
package retention

import (
	"fmt"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace/references"
)

// Heap is the graph of one reference listing of a recording.
type Heap struct {
	Graph *graph.Graph
	Names *heap.Symbols
	About reflisting.About
	Kept  bool // the graph was kept by an earlier Load
}

// Kept gives graphs of a recording that were kept earlier.
type Kept interface {
	// Get gives the graph of a listing, nil if none was kept. The listing has so many objects. Large arrays are in r.
	Get(r *room.Room, listing, objects uint64) *graph.Graph
}

// Options are for Load. The zero value makes each graph anew, in memory.
type Options struct {
	// Kept has graphs that were kept; nil: none.
	Kept Kept
	// Room gives a place for the arrays of a graph of so many objects and slots. The room must stay as long as the Heap
	// is used. nil, and a nil room: memory.
	Room func(objects, slots uint64) *room.Room
	// Progress gets the name of each step; nil: nobody asks.
	Progress func(step string)
}

// Load reads the newest reference listing of a recording that is not newer than collection gc. Errors:
// reflisting.ErrNone, those of reflisting.Read and graph.Build.
func Load(of reflisting.Sources, gc uint64, o Options) (*Heap, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	all, err := reflisting.Find(of.Heads())
	if err != nil {
		return nil, err
	}
	about, err := reflisting.Choose(all, gc)
	if err != nil {
		return nil, err
	}
	var r *room.Room
	if o.Room != nil {
		r = o.Room(about.Objects, about.Slots)
	}
	if o.Kept != nil {
		o.Progress("looking for the graph in the cache folder")
		if g := o.Kept.Get(r, about.Number, about.Objects); g != nil {
			names, err := reflisting.Names(of.Defs())
			if err == nil && g.L.Base == names.JVM.HeapBase {
				return &Heap{g, names, about, true}, nil
			}
		}
	}
	l, names, err := reflisting.ReadIn(r, of.Parts(), about.Number)
	if err != nil {
		return nil, err
	}
	g, err := graph.BuildIn(r, l, o.Progress)
	if err != nil {
		return nil, err
	}
	return &Heap{g, names, about, false}, nil
}

// Head begins each report: the listing that it is about.
type Head struct {
	ui.Envelope
	// The collection before the listing.
	GC uint64 `json:"gc"`
	// When the JVM was stopped.
	Time time.Time `json:"time"`
	// Objects of the heap, in eden too.
	Objects uint64 `json:"objects"`
	// Bytes of these objects.
	Bytes uint64 `json:"bytes"`
	// Bytes that no root reaches.
	Unreached uint64 `json:"unreached_bytes"`
	// Bytes that weak and phantom references alone lead to.
	Weak uint64 `json:"weak_bytes"`
	// Missing is what the listing left out. If it is not empty, unreached objects may be alive.
	Missing []string `json:"missing,omitempty"`
}

// head describes the listing.
func (h *Heap) head(verb string) Head {
	x := Head{Envelope: ui.NewEnvelope(verb, 1), GC: h.About.GC, Time: collection.Wall(h.Names, h.About.Time),
		Objects: uint64(h.Graph.Objects()), Missing: h.Graph.L.Missing}
	for i := range h.Graph.Objects() {
		b := h.Graph.Bytes(i)
		x.Bytes += b
		if h.Graph.Live(i) {
			continue
		}
		if _, ok := h.Graph.Strength(i); ok {
			x.Weak += b
		} else {
			x.Unreached += b
		}
	}
	return x
}

// Object gives the object at an address (bytes), or false.
func (h *Heap) Object(address uint64) (int, bool) {
	l := h.Graph.L
	w := (address - l.Base) / 8
	if address < l.Base || address%8 != 0 || w >= references.MaxWord {
		return 0, false
	}
	i := l.Find(uint32(w) + 1)
	return i, i >= 0
}

// address gives the address of an object, as it is written.
func (h *Heap) address(i int) string {
	return fmt.Sprintf("%#x", h.Graph.L.Base+uint64(h.Graph.L.Addr[i])*8)
}

// Path is a path of references in a document.
type Path struct {
	// What holds the first object; absent where the path begins at a holder.
	Root *Root `json:"root,omitempty"`
	// The references, in order.
	Steps []Step `json:"steps"`
	// References in the middle of a very long path that are left out.
	Left int `json:"left_out,omitempty"`
	// The path as the verb prints it.
	Text string `json:"text"`
}

// Root is what holds an object from outside the heap.
type Root struct {
	// Kind of root, for example "stack local".
	Kind string `json:"kind"`
	// Name of the thread.
	Thread string `json:"thread,omitempty"`
	// Class of the method that runs.
	Class string `json:"class,omitempty"`
	// The method that runs.
	Method string `json:"method,omitempty"`
	// Line in its source file.
	Line int `json:"line,omitempty"`
}

// Step is a reference, or a run of references that are called alike.
type Step struct {
	// Class of the object that has the field; of a static field, the class that declares it.
	Class string `json:"class"`
	// Name of the field; [] for an element of an array.
	Field string `json:"field"`
	// The field is static.
	Static bool `json:"static,omitempty"`
	// strong, soft, final, weak or phantom.
	Strength string `json:"strength"`
	// How many such references follow each other, as in a linked list.
	Times int `json:"times"`
	// Address of the first object that has the field.
	Address string `json:"address"`
}

// path makes a document of a path.
func (h *Heap) path(p *graph.Path) Path {
	out := Path{Steps: []Step{}, Left: p.Left, Text: string(p.Text())}
	if p.From == graph.None {
		r := &p.Root
		out.Root = &Root{Kind: r.Kind.String(), Thread: r.Thread, Method: r.Method, Line: r.Line}
		if r.Class != "" {
			out.Root.Class = graph.Name(r.Class)
		}
	}
	for i := range p.Hops {
		x := &p.Hops[i]
		s := Step{Class: graph.Name(x.Shape.Name), Field: x.Field.Name, Static: x.Static(),
			Strength: x.Field.Strength.String(), Times: x.Times, Address: h.address(x.From)}
		if s.Static {
			s.Class = graph.Name(x.Shape.Of)
		}
		out.Steps = append(out.Steps, s)
	}
	return out
}
