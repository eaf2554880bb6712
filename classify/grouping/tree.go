// Package grouping makes a tree of the objects of a heap state, with objects and bytes at every node, by the keys that
// classifiers give.
//
// A node's figures are those of the objects below it, each counted once, whatever the cardinality of the levels below.
// Levels that do not look at sites are exact. A level that does is estimated from the samples that live, each standing
// for as many objects as its weight says; within a type the estimates never exceed what the level above has
// (stats.Total.Fit), and what remains has an unknown site or is older than the recording. At sampling interval 0 every
// object is a sample and all levels are exact.
package grouping

import (
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
)

// Node is a group. Objects and bytes are those of all objects below it, each once. Where Estimated is set they are
// estimates and the bounds hold the true number with 95 % probability.
type Node struct {
	Key       string  `json:"key"`
	Objects   uint64  `json:"objects"`
	Bytes     uint64  `json:"bytes"`
	Estimated bool    `json:"estimated,omitempty"`
	Samples   uint64  `json:"samples,omitempty"`
	ObjLow    *uint64 `json:"objects_low,omitempty"`
	ObjHigh   *uint64 `json:"objects_high,omitempty"`
	BytesLow  *uint64 `json:"bytes_low,omitempty"`
	BytesHigh *uint64 `json:"bytes_high,omitempty"`
	Children  []*Node `json:"children,omitempty"`
	// Dead is garbage that was not collected yet; null: it is not known.
	Dead *Dead `json:"dead,omitempty"`
	// Drawn is how many of the objects are in this group because their callers were drawn (recorded with --sites
	// exact). The innermost frame is exact, and the callers are those of a live sample that has it.
	Drawn uint64 `json:"callers_drawn,omitempty"`
	// Share is the share of the objects with this innermost frame and drawn callers that is in this group.
	Share float64 `json:"callers_share,omitempty"`

	// Level is the index of the classifier that gave the key. A hierarchy's inner node may have children of its own
	// level and of the next.
	Level int `json:"-"`

	// Parts are the figures of the tuples of each part, if tuples have parts.
	Parts []Figure `json:"-"`
	// in the first of two states, and in the second
	Was, Now Figure `json:"-"`

	items []item // below it
	est   bool   // counted as an estimate

	// Of a Tree's: with which its items are counted if they are an estimate, what is below once that is known, and what
	// tells it apart (builder.node).
	fits    []fit
	crown   *crown
	callers *callers // nil: no object has drawn callers
	next    int16
	depth   int32
}

// Figure counts; without Estimated the bounds are the figures.
type Figure struct {
	Objects, Bytes      uint64
	Estimated           bool
	Samples             uint64
	ObjLow, ObjHigh     uint64
	BytesLow, BytesHigh uint64
}

// Tuples gives the indexes of the tuples below the node, in the slice that Build was given.
func (n *Node) Tuples() []int32 {
	out := make([]int32, len(n.items))
	for i, it := range n.items {
		out[i] = it.t
	}
	return out
}

// MaxNodes bounds a tree.
const MaxNodes = 2_000_000

// ErrTooMany says that a grouping has more nodes than MaxNodes.
var ErrTooMany = fmt.Errorf("the grouping has more than %d nodes: take fewer or coarser classifiers, or a filter",
	MaxNodes)

// figure takes over what f counts.
func (n *Node) figure(f Figure) {
	n.Objects, n.Bytes, n.Estimated, n.Samples = f.Objects, f.Bytes, f.Estimated, f.Samples
	if f.Estimated {
		n.ObjLow, n.ObjHigh, n.BytesLow, n.BytesHigh = &f.ObjLow, &f.ObjHigh, &f.BytesLow, &f.BytesHigh
	}
}

// below lets no bound of c exceed what its parent has, where that is known exactly. Of a parent that is an estimate the
// bounds may be closer: those of a site do not depend on what it is grouped with.
func (n *Node) below(c *Node) {
	if c.Estimated && !n.Estimated {
		*c.ObjHigh, *c.BytesHigh = max(c.Objects, min(*c.ObjHigh, n.Objects)), max(c.Bytes, min(*c.BytesHigh, n.Bytes))
	}
}

// clamp lets no bound exceed that of the parent.
func (n *Node) clamp() {
	for _, c := range n.Children {
		n.below(c)
		for i := range c.Parts {
			p, of := &c.Parts[i], &n.Parts[i]
			p.clamp(of)
		}
		c.Was.clamp(&n.Was)
		c.Now.clamp(&n.Now)
		c.clamp()
	}
}

func (f *Figure) clamp(of *Figure) {
	f.ObjHigh, f.BytesHigh = max(f.Objects, min(f.ObjHigh, of.ObjHigh)), max(f.Bytes, min(f.BytesHigh, of.BytesHigh))
}

func (n *Node) sort() {
	slices.SortFunc(n.Children, func(x, y *Node) int {
		if x.Bytes != y.Bytes {
			if x.Bytes > y.Bytes {
				return -1
			}
			return 1
		}
		return strings.Compare(x.Key, y.Key)
	})
}

// Walk calls f for the node and all below it, parents first, with their keys from the root's children on, until f is
// false, which leaves out what is below.
func (n *Node) Walk(f func(path []string, n *Node) bool) { n.walk(nil, f) }

func (n *Node) walk(path []string, f func([]string, *Node) bool) {
	if !f(path, n) {
		return
	}
	for _, c := range n.Children {
		c.walk(append(path[:len(path):len(path)], c.Key), f)
	}
}

// Fold gives a copy without the nodes below share of the root's bytes (0 to 1); they become one child "(n smaller)"
// with their sum where the level is of one key each. Its tuples are not kept.
func (n *Node) Fold(share float64) *Node { return n.fold(share*float64(n.Bytes), 0) }

func (n *Node) fold(least float64, depth int) *Node {
	c := *n
	c.Children = nil
	small := &Node{}
	count := 0
	for _, x := range n.Children {
		if float64(x.Bytes) < least {
			count++
			small.Objects += x.Objects
			small.Bytes += x.Bytes
			if x.Dead != nil {
				small.Dead = small.Dead.plus(x.Dead)
			}
			small.Estimated = small.Estimated || x.Estimated
			small.Drawn += x.Drawn
			continue
		}
		c.Children = append(c.Children, x.fold(least, depth+1))
	}
	if count > 0 {
		small.Key = fmt.Sprintf("(%d smaller)", count)
		c.Children = append(c.Children, small)
	}
	return &c
}

// Search gives a copy that keeps the nodes whose key matches, all below them and all above; nil if none does.
func (n *Node) Search(match func(key string) bool) *Node {
	if match(n.Key) {
		return n
	}
	var kept []*Node
	for _, x := range n.Children {
		if m := x.Search(match); m != nil {
			kept = append(kept, m)
		}
	}
	if kept == nil {
		return nil
	}
	c := *n
	c.Children = kept
	return &c
}

// FindPath finds the node at a path of keys joined by sep, which keys may hold as well; nil if there is none. The empty
// path is the root.
func (n *Node) FindPath(path, sep string) *Node {
	if path == "" {
		return n
	}
	for _, c := range n.Children {
		// who copies a key from a terminal has it escaped
		for _, key := range [...]string{c.Key, string(ui.Name(c.Key))} {
			if key == path {
				return c
			}
			if rest, ok := strings.CutPrefix(path, key+sep); ok {
				if m := c.FindPath(rest, sep); m != nil {
					return m
				}
			}
		}
	}
	return nil
}
