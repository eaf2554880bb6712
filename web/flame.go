package web

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
)

const (
	flameDepth = 64   // frames of a site in a flame graph
	flameNodes = 4000 // nodes of an answer
	flameLeast = 1000 // nodes of less than this fraction of the whole are left out
)

// What a node of a flame graph is: the page colours it by that.
const (
	nodeApp     = "app"
	nodeJDK     = "jdk"
	nodeLibrary = "library"
	nodeUnknown = "unknown"
	nodeOther   = "other" // neither a class nor a method
)

// flameNode is a node of a flame graph.
type flameNode struct {
	Key       string       `json:"key"`
	Kind      string       `json:"kind"`
	Bytes     uint64       `json:"bytes"`
	Objects   uint64       `json:"objects"`
	Estimated bool         `json:"estimated,omitempty"`
	Children  []*flameNode `json:"children,omitempty"`
	// the figures before, where two states are compared
	Was        uint64 `json:"before_bytes,omitempty"`
	WasObjects uint64 `json:"before_objects,omitempty"`
}

// flameReply is the answer to api/flame.
type flameReply struct {
	At      uint64     `json:"gc"`
	Order   string     `json:"order"` // root or leaf first
	Sites   bool       `json:"sites"` // the classifiers have a site: there are frames
	Tree    *flameNode `json:"tree"`
	Callers *flameNode `json:"callers,omitempty"` // of one frame, from it outwards; Tree is from it inwards
}

// flame answers with the flame graph of a heap state: all frames of the sites, from the root or from the leaf. fold
// joins frames of the JDK and of frameworks. frame selects the callers and callees of one frame.
func (s *Server) flame(r *http.Request) (any, error) {
	q := questionOf(r, stateBy)
	f, err := s.stacks(r.Context(), r.FormValue("at"), q)
	if err != nil {
		return nil, err
	}
	if r.FormValue("fold") != "" {
		f = f.folded()
	}
	rep := flameReply{At: f.gc, Order: cmp.Or(r.FormValue("order"), "root"), Sites: f.sites}
	if frame := r.FormValue("frame"); frame != "" {
		rep.Tree, rep.Callers = f.sandwich(frame)
		return rep, nil
	}
	rep.Tree, err = f.flame(rep.Order == "root", r.FormValue("path"))
	return rep, err
}

// flow is a stack from the root of a flame graph on.
type flow struct {
	keys []int32
	of   *stack
}

// flame makes the flame graph, or its part below a path, which is a JSON list of keys; "" is all of it.
func (f *flows) flame(rootFirst bool, path string) (*flameNode, error) {
	below, err := pathOf(or(path, "[]"))
	if err != nil {
		return nil, err
	}
	all := make([]flow, len(f.list))
	for i := range f.list {
		x := &f.list[i]
		if all[i] = (flow{x.keys, x}); rootFirst && x.to-x.from > 1 {
			keys := slices.Clone(x.keys)
			slices.Reverse(keys[x.from:x.to])
			all[i].keys = keys
		}
	}
	root := flameNode{Key: "heap", Kind: nodeOther}
	for _, k := range below {
		in := all[:0]
		for _, x := range all {
			if len(x.keys) > 0 && f.names[x.keys[0]] == k {
				root.Kind = f.kinds[x.keys[0]]
				in = append(in, flow{x.keys[1:], x.of})
			}
		}
		if root.Key, all = k, in; len(in) == 0 {
			return nil, badRequest{fmt.Errorf("there is no group %s in this flame graph", k)}
		}
	}
	return f.drawn(root, all), nil
}

// sandwich makes the trees of one frame: what it calls, with what is allocated there, and who calls it. Of a recursive
// one the outermost call counts for the former, the innermost for the latter.
func (f *flows) sandwich(frame string) (callees, callers *flameNode) {
	var down, up []flow
	is := func(k int32) bool { return f.names[k] == frame }
	for i := range f.list {
		x := &f.list[i]
		frames := x.keys[x.from:x.to]
		in := slices.IndexFunc(frames, is)
		if in < 0 {
			continue
		}
		out := len(frames) - 1
		for !is(frames[out]) {
			out--
		}
		inner := slices.Clone(frames[:out])
		slices.Reverse(inner)
		down = append(down, flow{slices.Concat(inner, x.keys[:x.from], x.keys[x.to:]), x})
		up = append(up, flow{frames[in+1:], x})
	}
	root := flameNode{Key: frame, Kind: kindOf(classOf(frame))}
	return f.drawn(root, down), f.drawn(root, up)
}

// drawn makes the tree of flows below root, the largest children first, without nodes that are too small to draw.
func (f *flows) drawn(root flameNode, all []flow) *flameNode {
	d := drawing{f: f, left: flameNodes, slot: make([]int32, len(f.names))}
	in := make([]int32, len(all))
	var sum width
	for i := range all {
		in[i] = int32(i)
		sum.add(all[i].of)
	}
	d.all = all
	d.least = max(sum.bytes()/flameLeast, 1)
	out := sum.node(root.Key, root.Kind)
	out.Children = d.below(in, 0)
	return out
}

// width adds up flows.
type width struct {
	now, objects, was, wasObjects float64
	estimated                     bool
}

func (w *width) add(x *stack) {
	w.estimated = w.estimated || x.estimated
	if x.was {
		w.was, w.wasObjects = w.was+x.bytes, w.wasObjects+x.objects
	} else {
		w.now, w.objects = w.now+x.bytes, w.objects+x.objects
	}
}

// bytes is what the width of a node shows: its bytes, before and after if two states are compared.
func (w *width) bytes() float64 { return w.now + w.was }

func (w *width) node(key, kind string) *flameNode {
	whole := func(x float64) uint64 { return uint64(math.Round(x)) }
	return &flameNode{Key: key, Kind: kind, Bytes: whole(w.now), Objects: whole(w.objects), Estimated: w.estimated,
		Was: whole(w.was), WasObjects: whole(w.wasObjects)}
}

// drawing is a tree that is being made.
type drawing struct {
	f     *flows
	all   []flow
	least float64 // bytes of a node
	left  int     // nodes
	slot  []int32 // by key: 1 + place among the children of the current node, 0 between nodes
}

// child is a child of a node.
type child struct {
	width
	key int32
	n   int // flows
}

// below makes the children that flows of the numbers in have at a depth.
func (d *drawing) below(in []int32, depth int) []*flameNode {
	if depth == maxPath || d.left == 0 {
		return nil
	}
	var kids []child
	for _, i := range in {
		x := &d.all[i]
		if len(x.keys) <= depth {
			continue
		}
		k := x.keys[depth]
		if d.slot[k] == 0 {
			kids = append(kids, child{key: k})
			d.slot[k] = int32(len(kids))
		}
		c := &kids[d.slot[k]-1]
		c.add(x.of)
		c.n++
	}
	for _, c := range kids {
		d.slot[c.key] = 0
	}
	kids = slices.DeleteFunc(kids, func(c child) bool { return c.bytes() < d.least })
	slices.SortFunc(kids, func(a, b child) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(d.f.names[a.key], d.f.names[b.key]))
	})
	// the flows of each, side by side
	parts := make([][]int32, len(kids))
	for i, c := range kids {
		d.slot[c.key] = int32(i + 1)
		parts[i] = make([]int32, 0, c.n)
	}
	for _, i := range in {
		if x := &d.all[i]; len(x.keys) > depth {
			if s := d.slot[x.keys[depth]]; s > 0 {
				parts[s-1] = append(parts[s-1], i)
			}
		}
	}
	for _, c := range kids {
		d.slot[c.key] = 0
	}
	var out []*flameNode
	for i, c := range kids {
		if d.left == 0 {
			break
		}
		d.left--
		n := c.node(d.f.names[c.key], d.f.kinds[c.key])
		n.Children = d.below(parts[i], depth+1)
		out = append(out, n)
	}
	return out
}
