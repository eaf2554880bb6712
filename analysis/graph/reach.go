package graph

import (
	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
)

// Levels of reach. What running frames alone hold is found after what lasts, so that a path leads through a frame only
// where there is no other; for all else both levels are one.
const (
	levelStrong = iota
	levelFrame
	levelSoft
	levelFinal
	levelWeak
	levelPhantom
	unreached
)

var levelStrength = [unreached + 1]references.Strength{references.Strong, references.Strong, references.Soft,
	references.Final, references.Weak, references.Phantom, references.Phantom}

var strengthLevel = [references.Strengths]uint8{references.Strong: levelStrong, references.Soft: levelSoft,
	references.Final: levelFinal, references.Weak: levelWeak, references.Phantom: levelPhantom}

// guessed says that a root is a word on a stack that may be a reference: it has neither thread nor method.
func guessed(r references.Root) bool {
	return r.Kind == references.StackLocal && r.Thread == "" && r.Class == "" && r.Method == ""
}

// rootLevel gives the level of what a root holds. A guessed one keeps its object alive, but where anything else holds
// the object, it is not named.
func rootLevel(r references.Root) uint8 {
	switch {
	case r.Kind == references.JNIWeak:
		return levelWeak
	case guessed(r):
		return levelFinal
	case passing(r.Kind):
		return levelFrame
	}
	return levelStrong
}

// step is an edge that waits until all of a smaller level have been followed: to an object, from parent.
type step struct{ to, parent uint32 }

// reach finds how each object is reached, and the last step of the best path to it: the shortest of those with the
// smallest level. It goes breadth first, level by level.
func (g *Graph) reach() {
	n := len(g.L.Addr)
	g.level, g.parent = room.Make[uint8](g.room, n), room.Make[uint32](g.room, n)
	for i := range g.level {
		g.level[i] = unreached
	}
	all := room.Make[uint32](g.room, n)
	queue := all[:0] // it never has more
	var waiting [unreached][]step
	for r, to := range g.target {
		l := rootLevel(g.roots[r])
		waiting[l] = append(waiting[l], step{to, uint32(n + 1 + r)})
	}
	for l := range uint8(unreached) {
		done := len(queue)
		for _, s := range waiting[l] {
			if g.parent[s.to] == 0 {
				g.parent[s.to], g.level[s.to] = s.parent, l
				if !g.isLeaf(s.to) {
					queue = append(queue, s.to)
				}
			}
		}
		waiting[l] = nil
		for ; done < len(queue); done++ {
			if done%ahead == 0 {
				g.load(queue[done:])
			}
			queue = g.follow(queue[done], l, queue, &waiting)
		}
	}
	room.Free(g.room, all)
}

// ahead is for how many objects of the queue load works at once.
const ahead = 32

// load reads what follow will need for the next objects: where their slots begin, the first slot, and the parent of its
// target. All three are far from each other, and follow would wait for each of them. Here the processor waits for many
// at once, since none depends on the one before. It changes nothing. sum is what was read, so that it is read.
//
//go:noinline
func (g *Graph) load(next []uint32) (sum uint64) {
	first, slots := g.L.First, g.L.Slots
	soon, later := next[:min(len(next), ahead)], next[min(len(next), ahead):min(len(next), 2*ahead)]
	for _, v := range later {
		sum += first[v]
	}
	for _, v := range soon { // all of them have slots
		sum += uint64(slots[first[v]])
	}
	for _, v := range soon {
		if t := slots[first[v]]; t-1 < uint32(len(g.parent)) {
			sum += uint64(g.parent[t-1])
		}
	}
	return sum
}

// follow appends what object v, of level l, newly reaches at this level to queue; the rest waits.
func (g *Graph) follow(v uint32, l uint8, queue []uint32, waiting *[unreached][]step) []uint32 {
	loose, gone := g.isLoose(v), g.isGone(v)
	for k, t := range g.L.Slots[g.L.First[v]:g.L.First[v+1]] {
		if t == 0 {
			continue
		}
		if t == dangling {
			if l <= levelFinal {
				g.Dangling[g.L.Code[v]]++
			}
			continue
		}
		t--
		if g.parent[t] != 0 || gone && !listsSpent[g.L.Shape(int(v)).Slot(k).Name] {
			continue
		}
		if loose {
			if at := strengthLevel[g.L.Shape(int(v)).Slot(k).Strength]; at > l {
				waiting[at] = append(waiting[at], step{t, v + 1})
				continue
			}
		}
		g.parent[t], g.level[t] = v+1, l
		if !g.isLeaf(t) {
			queue = append(queue, t)
		}
	}
	return queue
}

// plain is a level in which frames count as all other strong roots.
func plain(l uint8) uint8 {
	if l == levelFrame {
		return levelStrong
	}
	return l
}

// counts says whether the edge from v by its slot k gives object t its reach, and keeps it alive. v is live.
func (g *Graph) counts(v, t uint32, k int) bool {
	at := plain(g.level[v])
	if g.isLoose(v) {
		at = max(at, strengthLevel[g.L.Shape(int(v)).Slot(k).Strength])
	}
	return at <= levelFinal && at == plain(g.level[t])
}
