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
	Drawn     uint64       `json:"callers_drawn,omitempty"` // of the objects, as of grouping.Node
	Children  []*flameNode `json:"children,omitempty"`
	// the figures before, where two states are compared
	Was        uint64 `json:"before_bytes,omitempty"`
	WasObjects uint64 `json:"before_objects,omitempty"`
}

// flameReply is the answer to api/flame.
type flameReply struct {
	At      uint64     `json:"gc"`
	Order   string     `json:"order"`      // root or leaf first
	Sites   bool       `json:"sites"`      // the classifiers have a site: there are frames
	Heap    uint64     `json:"heap_bytes"` // of all live objects
	Tree    *flameNode `json:"tree"`
	Callers *flameNode `json:"callers,omitempty"` // of one frame, from it outwards; Tree is from it inwards
}

// flame answers with the flame graph of a heap state: all frames of the sites, from the root or from the leaf. fold
// joins frames of the JDK and of frameworks. frame selects the callers and callees of one frame.
func (s *Server) flame(r *http.Request) (any, error) {
	defer s.way.answered()
	q := questionOf(r, stateBy)
	f, err := s.stacks(r.Context(), r.FormValue("at"), q)
	if err != nil {
		return nil, err
	}
	if r.FormValue("fold") != "" {
		f = f.folded()
	}
	rep := flameReply{At: f.gc, Heap: f.heap, Order: cmp.Or(r.FormValue("order"), "root"), Sites: f.sites}
	if frame := r.FormValue("frame"); frame != "" {
		rep.Tree, rep.Callers = f.sandwich(frame)
		return rep, nil
	}
	rep.Tree, err = f.flame(rep.Order == "root", r.FormValue("path"))
	return rep, err
}

// flame makes the flame graph, or its part below a path, which is a JSON list of keys; "" is all of it.
func (f *flows) flame(rootFirst bool, path string) (*flameNode, error) {
	below, err := pathOf(or(path, "[]"))
	if err != nil {
		return nil, err
	}
	d := drawing{f: f, list: f.list, rootFirst: rootFirst}
	in := make([]int32, len(f.list))
	for i := range in {
		in[i] = int32(i)
	}
	root := flameNode{Key: "heap", Kind: nodeOther}
	for depth, k := range below {
		key := int32(slices.Index(f.names, k))
		in = slices.DeleteFunc(in, func(i int32) bool { return d.key(i, depth) != key })
		if key < 0 || len(in) == 0 {
			return nil, badRequest{fmt.Errorf("there is no group %s in this flame graph", k)}
		}
		root.Key, root.Kind = k, f.kinds[key]
	}
	return d.tree(root, in, len(below)), nil
}

// sandwich makes the trees of one frame: what it calls, with what is allocated there, and who calls it. Of a recursive
// one the outermost call counts for the former, the innermost for the latter.
func (f *flows) sandwich(frame string) (callees, callers *flameNode) {
	down, up := drawing{f: f}, drawing{f: f}
	var all []int32
	key := int32(slices.Index(f.names, frame))
	for i := range f.list {
		x := f.list[i]
		frames := x.keys[x.from:x.to]
		in := slices.Index(frames, key)
		if in < 0 {
			continue
		}
		out := len(frames) - 1
		for frames[out] != key {
			out--
		}
		inner := slices.Clone(frames[:out])
		slices.Reverse(inner)
		all = append(all, int32(len(all)))
		sure := int32(math.MinInt32) // even that the stack has the frame depends on drawn callers
		if in == 0 {
			sure = 0
		}
		before, after := x.keys[:x.from], x.keys[x.to:]
		x.keys, x.from, x.to = slices.Concat(inner, before, after), 0, 0
		if x.sure = sure; in == 0 {
			x.sure = int32(len(x.keys))
		}
		down.list = append(down.list, x)
		x.keys, x.sure = frames[in+1:], sure
		up.list = append(up.list, x)
	}
	root := flameNode{Key: frame, Kind: kindOf(classOf(frame))}
	return down.tree(root, all, 0), up.tree(root, all, 0)
}

// width adds up stacks.
type width struct {
	now, objects, was, wasObjects float64
	drawn                         float64 // of objects
	estimated                     bool
}

// add adds a stack to a node. drawn: that it belongs there depends on its callers.
func (w *width) add(x *stack, drawn bool) {
	w.estimated = w.estimated || x.estimated
	if drawn && x.drawn > 0 {
		w.estimated = true
		if !x.was {
			w.drawn += x.drawn
		}
	}
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
		Drawn: whole(w.drawn), Was: whole(w.was), WasObjects: whole(w.wasObjects)}
}

// drawing is a tree that is being made of stacks.
type drawing struct {
	f         *flows
	list      []stack
	rootFirst bool
	least     float64 // bytes of a node
	left      int     // nodes
	slot      []int32 // by key: 1 + place among the children of the current node, 0 between nodes
}

// key is the key of stack i at a depth, -1 if it has none.
func (d *drawing) key(i int32, depth int) int32 {
	x := &d.list[i]
	if len(x.keys) <= depth {
		return -1
	}
	if d.rootFirst && depth >= int(x.from) && depth < int(x.to) {
		return x.keys[int(x.from+x.to)-1-depth]
	}
	return x.keys[depth]
}

// drawn says whether that x is in a node whose key is at a depth depends on its callers.
func (d *drawing) drawn(x *stack, depth int) bool {
	sure := x.sure
	if d.rootFirst && x.to > x.from {
		sure = min(sure, x.from)
	}
	return depth >= int(sure)
}

// tree makes the tree of the stacks of the numbers in, below root, which is at a depth: the largest children first,
// without nodes that are too small to draw.
func (d *drawing) tree(root flameNode, in []int32, depth int) *flameNode {
	var sum width
	for _, i := range in {
		sum.add(&d.list[i], d.drawn(&d.list[i], depth-1))
	}
	d.least, d.left, d.slot = max(sum.bytes()/flameLeast, 1), flameNodes, make([]int32, len(d.f.names))
	out := sum.node(root.Key, root.Kind)
	out.Children = d.below(in, depth)
	return out
}

// child is a child of a node.
type child struct {
	width
	key int32
	in  []int32 // its stacks
	n   int     // how many these are
}

// below makes the children that stacks of the numbers in have at a depth.
func (d *drawing) below(in []int32, depth int) (out []*flameNode) {
	if depth == maxPath || d.left == 0 {
		return nil
	}
	var kids []child
	for _, i := range in {
		k := d.key(i, depth)
		if k < 0 {
			continue
		}
		if d.slot[k] == 0 {
			kids = append(kids, child{key: k})
			d.slot[k] = int32(len(kids))
		}
		c := &kids[d.slot[k]-1]
		c.add(&d.list[i], d.drawn(&d.list[i], depth))
		c.n++
	}
	for _, c := range kids {
		d.slot[c.key] = 0
	}
	kids = slices.DeleteFunc(kids, func(c child) bool { return c.bytes() < d.least })
	slices.SortFunc(kids, func(a, b child) int {
		return cmp.Or(cmp.Compare(b.bytes(), a.bytes()), cmp.Compare(d.f.names[a.key], d.f.names[b.key]))
	})
	for i := range kids {
		kids[i].in = make([]int32, 0, kids[i].n)
		d.slot[kids[i].key] = int32(i + 1)
	}
	for _, i := range in {
		if k := d.key(i, depth); k >= 0 && d.slot[k] > 0 {
			c := &kids[d.slot[k]-1]
			c.in = append(c.in, i)
		}
	}
	for _, c := range kids {
		d.slot[c.key] = 0
	}
	for _, c := range kids {
		if d.left == 0 {
			break
		}
		d.left--
		n := c.node(d.f.names[c.key], d.f.kinds[c.key])
		n.Children = d.below(c.in, depth+1)
		out = append(out, n)
	}
	return out
}
