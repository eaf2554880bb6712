package graph

import "github.com/heapcam/heapcam/trace/references"

// NoRoot is the kind of root of what no root reaches.
const NoRoot = references.RootKind(255)

// RootKinds gives for each object the kind of the root at the start of its best path, NoRoot if no root reaches it.
func (g *Graph) RootKinds() []references.RootKind {
	n := uint32(len(g.parent))
	out, done := make([]references.RootKind, n), make([]uint64, (n+63)/64)
	var way []uint32
	for i := range n {
		way = way[:0]
		v, kind := i, NoRoot
		for {
			if done[v/64]>>(v%64)&1 != 0 {
				kind = out[v]
				break
			}
			way = append(way, v)
			up := g.parent[v]
			if up > n {
				kind = g.roots[up-n-1].Kind
			}
			if up == 0 || up > n {
				break
			}
			v = up - 1
		}
		for _, v := range way {
			out[v], done[v/64] = kind, done[v/64]|1<<(v%64)
		}
	}
	return out
}

// Outermost gives for each live object the outermost object that dominates it and does not hold unrelated things, as
// classes, loaders and threads do; the object itself if there is none. It is None for all others.
func (g *Graph) Outermost() []int {
	out := make([]int, len(g.node))
	top := make([]uint32, len(g.vertex)) // by node
	f := finder{g: g}
	for v := uint32(1); v < uint32(len(g.vertex)); v++ { // dominators are before what they dominate
		top[v] = v
		if up := g.idom[v]; up != 0 && !f.divides(top[up]) {
			top[v] = top[up]
		}
	}
	for i := range out {
		if out[i] = None; g.node[i] != 0 {
			out[i] = int(g.vertex[top[g.node[i]]])
		}
	}
	return out
}
