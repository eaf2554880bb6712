package graph

import "github.com/heapcam/heapcam/internal/room"

// dominate numbers the live objects in preorder of a depth-first search and finds their dominators by the algorithm
// "semi-NCA" (Georgiadis, Linear-Time Algorithms for Dominators and Related Problems, 2005). Node 0 stands for all
// roots together.
func (g *Graph) dominate() {
	cells := g.search()
	n := len(g.vertex)
	start, from := g.predecessors(cells)
	g.setNodes(cells)
	room.Free(g.room, cells)
	d := dominators{
		ancestor: room.Make[uint32](g.room, n), best: room.Make[uint32](g.room, n), semi: room.Make[uint32](g.room, n),
	}
	copy(d.ancestor, g.idom) // the tree of the search
	for i := range d.best {
		d.best[i] = uint32(i)
	}
	for v := n - 1; v > 0; v-- {
		s := d.ancestor[v]
		d.last = uint32(v + 1)
		for _, u := range from[start[v]:start[v+1]] {
			s = min(s, d.eval(u))
		}
		d.semi[v], d.best[v] = s, s
	}
	for v := 1; v < n; v++ {
		i := g.idom[v]
		for i > d.semi[v] {
			i = g.idom[i]
		}
		g.idom[v] = i
	}
	for _, a := range [][]uint32{d.ancestor, d.best, d.semi, start, from} {
		room.Free(g.room, a)
	}
}

// dominators is the state of semi-NCA. Until a node has been visited, best is its own number.
type dominators struct {
	ancestor, best, semi, stack []uint32
	last                        uint32 // nodes from this one on have been visited
}

// eval gives the smallest semidominator on the path from v to its root through visited nodes, and shortens that path.
func (d *dominators) eval(v uint32) uint32 {
	if v < d.last || d.ancestor[v] < d.last {
		return d.best[v]
	}
	stack := d.stack[:0]
	for d.ancestor[v] >= d.last {
		stack = append(stack, v)
		v = d.ancestor[v]
	}
	top, best := d.ancestor[v], d.best[v]
	for i := len(stack) - 1; i >= 0; i-- {
		v = stack[i]
		d.ancestor[v] = top
		best = min(best, d.best[v])
		d.best[v] = best
	}
	d.stack = stack
	return best
}

// cell is an object in the search: its node and its level, together because each edge needs both, and how many edges
// lead to it; later, where the next one is put.
type cell struct{ node, edges uint32 }

// The bits of cell.node: the level of a live object (0 strong, 1 soft, 2 final; 3: not live) and its node.
const (
	nodeBits = 30
	nodeMask = 1<<nodeBits - 1
	notLive  = 3
)

// MaxObjects bounds the objects of a graph.
const MaxObjects = nodeMask - 1

// cells makes the cells of all objects, without nodes.
func (g *Graph) cells() (cells []cell, live int) {
	class := [unreached + 1]uint32{0, 0, 1, 2, notLive, notLive, notLive}
	cells = room.Make[cell](g.room, len(g.level))
	for i, l := range g.level {
		c := class[l]
		cells[i].node = c << nodeBits
		if c != notLive {
			live++
		}
	}
	return cells, live
}

// cursor is a node of the search whose slots from next to end have not been looked at.
type cursor struct {
	object, node uint32
	next, end    uint32
}

// search numbers the live objects in preorder and counts the edges to each. idom has the parents in the tree of the
// search then.
func (g *Graph) search() []cell {
	l := g.L
	cells, live := g.cells()
	g.vertex, g.idom = room.Make[uint32](g.room, live+1)[:1], room.Make[uint32](g.room, live+1)[:1]
	var stack []cursor
	enter := func(t, parent uint32) {
		n := uint32(len(g.vertex))
		cells[t].node |= n
		if !g.isLeaf(t) {
			stack = append(stack, cursor{t, n, uint32(l.First[t]), uint32(l.First[t+1])})
		}
		g.vertex, g.idom = append(g.vertex, t), append(g.idom, parent)
	}
	for r, t := range g.target {
		if !g.rooted(r, t) {
			continue
		}
		if cells[t].edges++; cells[t].node&nodeMask != 0 {
			continue
		}
		enter(t, 0)
		for len(stack) > 0 {
			c := &stack[len(stack)-1]
			next := g.descend(c, cells)
			if next == 0 {
				stack = stack[:len(stack)-1]
				continue
			}
			enter(next-1, c.node)
		}
	}
	return cells
}

// rooted says whether root r gives object t its reach, and keeps it alive.
func (g *Graph) rooted(r int, t uint32) bool {
	return g.level[t] <= levelFinal && plain(rootLevel(g.roots[r])) == plain(g.level[t])
}

// descend counts the edges of c up to one that leads to an object without a node, and gives that object + 1, or 0.
func (g *Graph) descend(c *cursor, cells []cell) uint32 {
	v := c.object
	at, loose := cells[v].node>>nodeBits, g.isLoose(v)
	slots := g.L.Slots[c.next:c.end]
	for k, t := range slots {
		if t == 0 || t == dangling {
			continue
		}
		to := &cells[t-1]
		if to.node>>nodeBits != at && !loose {
			continue
		}
		if loose && !g.counts(v, t-1, int(uint64(c.next)+uint64(k)-g.L.First[v])) {
			continue
		}
		if to.edges++; to.node&nodeMask == 0 {
			c.next += uint32(k) + 1
			return t
		}
	}
	c.next = c.end
	return 0
}

// predecessors gives for each node the nodes that have an edge to it which counts: from[start[v]:start[v+1]].
func (g *Graph) predecessors(cells []cell) (start, from []uint32) {
	n := len(g.vertex)
	start = room.Make[uint32](g.room, n+1)
	sum := uint32(0)
	for v := 1; v < n; v++ {
		c := &cells[g.vertex[v]]
		start[v] = sum
		sum, c.edges = sum+c.edges, sum
	}
	start[n] = sum
	from = room.Make[uint32](g.room, int(sum))
	put := func(c *cell, v uint32) {
		from[c.edges] = v
		c.edges++
	}
	l := g.L
	for v := 1; v < n; v++ {
		o := g.vertex[v]
		if g.isLeaf(o) {
			continue
		}
		at, loose, first := cells[o].node>>nodeBits, g.isLoose(o), l.First[o]
		for k, t := range l.Slots[first:l.First[o+1]] {
			if t == 0 || t == dangling {
				continue
			}
			to := &cells[t-1]
			if !loose && to.node>>nodeBits == at || loose && g.counts(o, t-1, k) {
				put(to, uint32(v))
			}
		}
	}
	for r, t := range g.target {
		if g.rooted(r, t) {
			put(&cells[t], 0)
		}
	}
	return start, from
}

// setNodes keeps the node of each object.
func (g *Graph) setNodes(cells []cell) {
	g.node = room.Make[uint32](g.room, len(cells))
	for i := range cells {
		g.node[i] = cells[i].node & nodeMask
	}
}

// retain adds up the sizes from the leaves of the dominator tree. A dominator has a smaller number than what it
// dominates. All objects together have fewer than 2^32 words.
func (g *Graph) retain() {
	g.size = room.Make[uint32](g.room, len(g.vertex))
	for v := len(g.vertex) - 1; v > 0; v-- {
		g.size[v] += g.L.Words[g.vertex[v]]
		g.size[g.idom[v]] += g.size[v]
	}
}
