package graph

// dominate numbers the live objects in preorder of a depth-first search and finds their dominators by the algorithm
// "semi-NCA" (Georgiadis, Linear-Time Algorithms for Dominators and Related Problems, 2005). Node 0 stands for all
// roots together.
func (g *Graph) dominate() {
	g.search()
	n := len(g.vertex)
	start, from := g.predecessors()
	d := dominators{
		ancestor: make([]uint32, n), best: make([]uint32, n), semi: make([]uint32, n), last: 0,
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
}

// dominators is the state of semi-NCA. Until a node has been visited, best is its own number.
type dominators struct {
	ancestor, best, semi, stack []uint32
	last                        uint32 // nodes from this one on have been visited
}

// eval gives the smallest semidominator on the way up from v through visited nodes, and shortens that way.
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

// search numbers the live objects in preorder. idom has the parents in the tree of the search then.
func (g *Graph) search() {
	l := g.L
	n := len(l.Addr)
	live := 0
	for _, at := range g.level {
		if at <= levelFinal {
			live++
		}
	}
	g.node = make([]uint32, n)
	g.vertex, g.idom = make([]uint32, 1, live+1), make([]uint32, 1, live+1)
	type cursor struct {
		node uint32
		next uint64
	}
	var stack []cursor
	enter := func(t, parent uint32) {
		g.node[t] = uint32(len(g.vertex))
		stack = append(stack, cursor{g.node[t], l.First[t]})
		g.vertex, g.idom = append(g.vertex, t), append(g.idom, parent)
	}
	for r, t := range g.target {
		if g.node[t] != 0 || g.level[t] > levelFinal || plain(rootLevel(g.roots[r].Kind)) != plain(g.level[t]) {
			continue
		}
		enter(t, 0)
		for len(stack) > 0 {
			c := &stack[len(stack)-1]
			v := g.vertex[c.node]
			end, at, loose := l.First[v+1], plain(g.level[v]), g.loose[l.Code[v]]
			down := false
			for c.next < end {
				t := l.Slots[c.next]
				c.next++
				if t == 0 || t == dangling || g.node[t-1] != 0 {
					continue
				}
				t--
				if !loose && at == plain(g.level[t]) ||
					loose && g.level[t] <= levelFinal && g.counts(v, t, int(c.next-1-l.First[v])) {
					enter(t, c.node)
					down = true
					break
				}
			}
			if !down {
				stack = stack[:len(stack)-1]
			}
		}
	}
}

// predecessors gives for each node the nodes that have an edge to it which counts: from[start[v]:start[v+1]].
func (g *Graph) predecessors() (start []uint64, from []uint32) {
	n := len(g.vertex)
	start = make([]uint64, n+2)
	each := func(do func(t, v uint32)) {
		l := g.L
		for v := 1; v < n; v++ {
			o := g.vertex[v]
			at, loose := plain(g.level[o]), g.loose[l.Code[o]]
			for k, t := range l.Slots[l.First[o]:l.First[o+1]] {
				if t == 0 || t == dangling {
					continue
				}
				w := g.node[t-1]
				if w == 0 || !loose && at != plain(g.level[t-1]) || loose && !g.counts(o, t-1, k) {
					continue
				}
				do(w, uint32(v))
			}
		}
		for r, t := range g.target {
			if w := g.node[t]; w != 0 && plain(rootLevel(g.roots[r].Kind)) == plain(g.level[t]) {
				do(w, 0)
			}
		}
	}
	each(func(t, _ uint32) { start[t+1]++ })
	for i := 1; i < len(start); i++ {
		start[i] += start[i-1]
	}
	// start[v] is where the next one of v goes; afterwards it is where those of v end, so that shifting it by one gives
	// where they begin.
	from = make([]uint32, start[n])
	each(func(t, v uint32) {
		from[start[t]] = v
		start[t]++
	})
	copy(start[1:], start[:n+1])
	start[0] = 0
	return start, from
}

// retain adds up the sizes from the leaves of the dominator tree. A dominator has a smaller number than what it
// dominates. All objects together have fewer than 2^32 words.
func (g *Graph) retain() {
	g.size = make([]uint32, len(g.vertex))
	for v := len(g.vertex) - 1; v > 0; v-- {
		g.size[v] += g.L.Words[g.vertex[v]]
		g.size[g.idom[v]] += g.size[v]
	}
}
