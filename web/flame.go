package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/classify"
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

	by map[string]*flameNode
}

// width is what the width of a node shows: its bytes, before and after if two states are compared.
func (n *flameNode) width() uint64 { return n.Bytes + n.Was }

// step is a key on the way to a group.
type step struct{ key, kind string }

// stack is a group: the keys before the site, the frames, innermost first, and the keys after it, with what no group
// below it has.
type stack struct {
	before, frames, after []step
	bytes, objects        uint64
	estimated             bool
	was                   bool // of the state before, where two are compared
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
	stacks, gc, hasSites, err := s.stacks(r.Context(), r.FormValue("at"), q)
	if err != nil {
		return nil, err
	}
	if r.FormValue("fold") != "" {
		stacks = foldAll(stacks)
	}
	rep := flameReply{At: gc, Order: cmp.Or(r.FormValue("order"), "root"), Sites: hasSites}
	if f := r.FormValue("frame"); f != "" {
		rep.Tree, rep.Callers = sandwich(stacks, f)
		rep.Tree, rep.Callers = rep.Tree.cut(rep.Tree.Bytes), rep.Callers.cut(rep.Callers.Bytes)
		return rep, nil
	}
	tree, err := flameOf(stacks, rep.Order == "root").below(r.FormValue("path"))
	if err != nil {
		return nil, err
	}
	rep.Tree = tree.cut(tree.Bytes)
	return rep, nil
}

// below finds the node at a path, which is a JSON list of keys; "" is the node itself.
func (n *flameNode) below(p string) (*flameNode, error) {
	path, err := pathOf(or(p, "[]"))
	if err != nil {
		return nil, err
	}
	for _, k := range path {
		c := n.by[k]
		if c == nil {
			return nil, badRequest{fmt.Errorf("there is no group %s in this flame graph", k)}
		}
		n = c
	}
	return n, nil
}

// stacks returns the groups of a state with all frames of their sites, from the cache or from a grouping.
func (s *Server) stacks(ctx context.Context, at string, q question) (out []stack, gc uint64, sites bool, err error) {
	by, _, err := q.make(s)
	if err != nil {
		return nil, 0, false, err
	}
	site := slices.IndexFunc(by, func(c classify.Classifier) bool {
		return c.Name == "site" || strings.HasPrefix(c.Name, "site(")
	})
	names := make([]string, len(by))
	for i, c := range by {
		if names[i] = c.Name; i == site {
			names[i] = fmt.Sprintf("site(%d)", flameDepth)
		}
	}
	g, err := s.grouped(ctx, at, question{strings.Join(names, ", "), q.where})
	if err != nil {
		return nil, 0, false, err
	}
	all, err := g.tree.All(g.tree.Root)
	if err != nil {
		return nil, 0, false, badRequest{err}
	}
	kinds := make([]bool, len(by)) // the keys are names of classes
	for i, n := range names {
		kinds[i] = n == "type" || strings.HasPrefix(n, "type(")
	}
	var walk func(n *classify.Node, x stack)
	walk = func(n *classify.Node, x stack) {
		left := [2]uint64{n.Bytes, n.Objects}
		for _, c := range n.Children {
			left[0], left[1] = left[0]-min(c.Bytes, left[0]), left[1]-min(c.Objects, left[1])
			k, to := step{c.Key, nodeOther}, x
			switch {
			case c.Level == site:
				k.kind = kindOf(classOf(c.Key))
				to.frames = append(slices.Clip(x.frames), k)
			case site >= 0 && c.Level > site:
				if kinds[c.Level] {
					k.kind = kindOf(c.Key)
				}
				to.after = append(slices.Clip(x.after), k)
			default:
				if kinds[c.Level] {
					k.kind = kindOf(c.Key)
				}
				to.before = append(slices.Clip(x.before), k)
			}
			walk(c, to)
		}
		if left[0] > 0 {
			x.bytes, x.objects, x.estimated = left[0], left[1], n.Estimated
			out = append(out, x)
		}
	}
	walk(all, stack{})
	return out, g.GC, site >= 0, nil
}

// classOf is the class of a frame as a group names it: its method, file and line are left out.
func classOf(frame string) string {
	frame, _, _ = strings.Cut(frame, "(")
	if i := strings.LastIndexByte(frame, '.'); i > 0 {
		return frame[:i]
	}
	return frame
}

func kindOf(class string) string {
	name := strings.TrimRight(class, "[]")
	switch {
	case class == "" || strings.HasPrefix(class, "("): // (site unknown), (before the recording)
		return nodeUnknown
	case sites.JDK(name) || slices.Contains(primitives, name):
		return nodeJDK
	case sites.Library(name):
		return nodeLibrary
	}
	return nodeApp
}

var primitives = []string{"boolean", "byte", "char", "double", "float", "int", "long", "short"}

// foldFrames joins neighbours that are of the JDK or of frameworks. A joined one has the name of the outermost frame,
// which the application called, and an ellipsis.
func foldFrames(frames []step) []step {
	var out []step
	for i := 0; i < len(frames); i++ {
		j := i
		for j < len(frames) && (frames[j].kind == nodeJDK || frames[j].kind == nodeLibrary) {
			j++
		}
		if j-i < 2 {
			out = append(out, frames[i])
			continue
		}
		last := frames[j-1]
		last.key += " …"
		out = append(out, last)
		i = j - 1
	}
	return out
}

func foldAll(stacks []stack) []stack {
	folded := make([]stack, len(stacks))
	for i, x := range stacks {
		x.frames = foldFrames(x.frames)
		folded[i] = x
	}
	return folded
}

// add adds to the node and its descendants along the keys.
func (n *flameNode) add(keys []step, x *stack) {
	for i := 0; ; i++ {
		n.Estimated = n.Estimated || x.estimated
		if x.was {
			n.Was, n.WasObjects = n.Was+x.bytes, n.WasObjects+x.objects
		} else {
			n.Bytes, n.Objects = n.Bytes+x.bytes, n.Objects+x.objects
		}
		if i == len(keys) {
			return
		}
		c := n.by[keys[i].key]
		if c == nil {
			if n.by == nil {
				n.by = map[string]*flameNode{}
			}
			c = &flameNode{Key: keys[i].key, Kind: keys[i].kind}
			n.by[keys[i].key] = c
			n.Children = append(n.Children, c)
		}
		n = c
	}
}

func reversed(frames []step) []step {
	out := slices.Clone(frames)
	slices.Reverse(out)
	return out
}

// flameOf makes the tree of all stacks.
func flameOf(stacks []stack, rootFirst bool) *flameNode {
	root := &flameNode{Key: "heap", Kind: nodeOther}
	for i := range stacks {
		x := &stacks[i]
		frames := x.frames
		if rootFirst {
			frames = reversed(frames)
		}
		root.add(slices.Concat(x.before, frames, x.after), x)
	}
	return root
}

// sandwich makes the trees of one frame: what it calls, with what is allocated there, and who calls it. Of a recursive
// one the outermost call counts for the former, the innermost for the latter.
func sandwich(stacks []stack, frame string) (callees, callers *flameNode) {
	callees, callers = &flameNode{Key: frame, Kind: kindOf(classOf(frame))}, &flameNode{Key: frame}
	callers.Kind = callees.Kind
	is := func(s step) bool { return s.key == frame }
	for i := range stacks {
		x := &stacks[i]
		in := slices.IndexFunc(x.frames, is)
		if in < 0 {
			continue
		}
		out := len(x.frames) - 1
		for !is(x.frames[out]) {
			out--
		}
		callees.add(slices.Concat(reversed(x.frames[:out]), x.before, x.after), x)
		callers.add(x.frames[in+1:], x)
	}
	return callees, callers
}

// cut is a copy of the tree, the largest children first, without nodes that are too small to draw; all is the size of
// the drawing in bytes.
func (n *flameNode) cut(all uint64) *flameNode {
	left := flameNodes
	var walk func(n *flameNode, depth int) *flameNode
	walk = func(n *flameNode, depth int) *flameNode {
		out := *n
		out.by, out.Children = nil, nil
		kids := slices.Clone(n.Children)
		slices.SortStableFunc(kids, func(a, b *flameNode) int {
			return cmp.Or(cmp.Compare(b.width(), a.width()), cmp.Compare(a.Key, b.Key))
		})
		for _, c := range kids {
			if c.width() < max(all/flameLeast, 1) || left == 0 || depth == maxPath {
				break
			}
			left--
			out.Children = append(out.Children, walk(c, depth+1))
		}
		return &out
	}
	return walk(n, 0)
}
