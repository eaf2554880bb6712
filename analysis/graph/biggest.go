package graph

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/trace/references"
)

// Biggest gives the n objects that retain most, the largest first. An object whose dominator is among them as well
// counts like any other, but for those that only repeat what is above them: the elements of a linked list, each of
// which retains nearly all that the one before it does.
func (g *Graph) Biggest(n int) []int {
	return g.largest(n, g.size, g.repeats)
}

// repeatsWithin is how many objects above it an element of a list may repeat: a list may have entries in between.
const repeatsWithin = 3

// repeats says whether the object of node v is one of a shape that stands close above it too, and retains most of what
// that retains.
func (g *Graph) repeats(v uint32) bool {
	code, up := g.L.Code[g.vertex[v]], v
	for range repeatsWithin {
		up = g.idom[up]
		if up == 0 || g.L.Shape(int(g.vertex[up])).Kind == references.ObjectArray { // a map in a map is no list
			return false
		}
		if g.L.Code[g.vertex[up]] == code {
			return float64(g.size[v]) >= mostly*float64(g.size[up])
		}
	}
	return false
}

// Drops gives the n objects that retain most beside the largest part that one other object dominates: what they hold is
// held by many objects below them. The largest is first.
func (g *Graph) Drops(n int) []int {
	drop := g.drops()
	return g.largest(n, drop, nil)
}

// Drop gives the bytes that objects retain with themselves, but for what the largest object below them retains.
func (g *Graph) Drop(objects []int) []uint64 {
	drop := g.drops()
	out := make([]uint64, len(objects))
	for k, i := range objects {
		out[k] = uint64(drop[g.node[i]]) * 8
	}
	return out
}

// drops gives these sizes by node, words.
func (g *Graph) drops() []uint32 {
	most := make([]uint32, len(g.size)) // by node: size of the largest child
	for v := len(g.size) - 1; v > 0; v-- {
		up := g.idom[v]
		most[up] = max(most[up], g.size[v])
	}
	for v := range most {
		most[v] = g.size[v] - most[v]
	}
	most[0] = 0
	return most
}

// largest gives the objects of the n nodes with the largest sizes that are not to be left out.
func (g *Graph) largest(n int, sizes []uint32, leaveOut func(uint32) bool) []int {
	var top []uint32 // nodes, the smallest first: as a sorted list, for n is small
	for v := 1; v < len(sizes); v++ {
		if len(top) == n && (n == 0 || sizes[v] <= sizes[top[0]]) {
			continue
		}
		if leaveOut != nil && leaveOut(uint32(v)) {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, sizes[v], func(t, size uint32) int {
			return cmp.Compare(sizes[t], size)
		})
		top = slices.Insert(top, at, uint32(v))
		if len(top) > n {
			top = top[1:]
		}
	}
	slices.Reverse(top)
	out := make([]int, len(top))
	for i, v := range top {
		out[i] = int(g.vertex[v])
	}
	return out
}

// Sum is what a group of objects has: all live objects of it, their bytes, and the bytes that they retain together.
type Sum struct{ Objects, Bytes, Retained uint64 }

// Sums adds up the live objects by group: group gives the number of that of each object, below n. What an object
// retains counts if no dominator of it is in the same group.
func (g *Graph) Sums(n int, group func(object int) int) []Sum {
	out := make([]Sum, n)
	first, next := g.children()
	inside := make([]uint32, n) // by group: how many nodes on the way to the one in hand are in it
	type entry struct{ node, child uint32 }
	stack := []entry{{0, first[0]}}
	for len(stack) > 0 {
		e := &stack[len(stack)-1]
		if e.child != 0 {
			v := e.child
			e.child = next[v]
			k := group(int(g.vertex[v]))
			s := &out[k]
			s.Objects++
			s.Bytes += g.Bytes(int(g.vertex[v]))
			if inside[k] == 0 {
				s.Retained += uint64(g.size[v]) * 8
			}
			inside[k]++
			stack = append(stack, entry{v, first[v]})
			continue
		}
		if e.node != 0 {
			inside[group(int(g.vertex[e.node]))]--
		}
		stack = stack[:len(stack)-1]
	}
	return out
}

// children gives the dominator tree downwards: the first child of each node, and the next one with the same dominator.
func (g *Graph) children() (first, next []uint32) {
	first, next = make([]uint32, len(g.idom)), make([]uint32, len(g.idom))
	for v := len(g.idom) - 1; v > 0; v-- {
		next[v] = first[g.idom[v]]
		first[g.idom[v]] = uint32(v)
	}
	return first, next
}
