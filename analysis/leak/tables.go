package leak

import (
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// A hash table grows before it has as many nodes as slots: more nodes than all tables take are dead, whichever they
// are. That is known even where old space is never collected.
const (
	hashMaps = iota // HashMap, LinkedHashMap, HashSet
	concurrentMaps
	weakMaps
	hashtables
	softReferences // no tables
	families
)

var (
	hashNodes = map[string]int{"java/util/HashMap$Node": hashMaps,
		"java/util/LinkedHashMap$Entry": hashMaps, "java/util/HashMap$TreeNode": hashMaps,
		"java/util/concurrent/ConcurrentHashMap$Node": concurrentMaps,
		"java/util/WeakHashMap$Entry":                 weakMaps, "java/util/Hashtable$Entry": hashtables,
		"java/lang/ref/SoftReference": softReferences}
	hashTables = map[string]int{"[Ljava/util/HashMap$Node;": hashMaps,
		"[Ljava/util/concurrent/ConcurrentHashMap$Node;": concurrentMaps,
		"[Ljava/util/WeakHashMap$Entry;":                 weakMaps,
		"[Ljava/util/Hashtable$Entry;":                   hashtables}
)

const (
	leastNodes = 1000 // of a family: with fewer no one asks for room
	loadFactor = 0.75 // of a table's slots that it fills before it grows, unless its maker sets another
	// live samples that compare the number of nodes with that of a site's objects, at least
	fewestNoded = 12
	// slots of a table that was surely shorter once; what a shorter one was before may have died young, unseen
	grownTable = 1024
)

// tables counts the nodes of the JDK's hash tables and what these have room for.
type tables struct {
	node, table map[uint32]int              // families of types, -1: none
	nodes       [][families]uint64          // after each collection
	now         [families]map[uint64]uint64 // tables by length, after the newest
}

// begin begins the i-th collection; where the state after it is not known it has the nodes of the one before.
func (x *tables) begin(i int, known bool) {
	var last [families]uint64
	if i > 0 && !known {
		last = x.nodes[i-1]
	}
	x.nodes = append(x.nodes, last)
	for f := range x.now {
		if known {
			x.now[f] = map[uint64]uint64{}
		}
	}
}

// count takes in how many objects of a type there are.
func (x *tables) count(r *heap.Symbols, typ uint32, objects uint64) {
	if f := family(r, x.node, hashNodes, typ); f >= 0 {
		x.nodes[len(x.nodes)-1][f] += objects
	}
}

// length takes in how many arrays of a type and length there are.
func (x *tables) length(r *heap.Symbols, typ uint32, n, objects uint64) {
	if f := family(r, x.table, hashTables, typ); f >= 0 {
		x.now[f][n] += objects
	}
}

// family gives that of a type, -1 if it has none.
func family(r *heap.Symbols, known map[uint32]int, names map[string]int, typ uint32) int {
	f, ok := known[typ]
	if !ok {
		t := r.Types[uint64(typ)]
		if f, ok = names[t.Name]; !ok {
			f = -1
		}
		if t.ID != 0 {
			known[typ] = f
		}
	}
	return f
}

// room is how many nodes the tables of a family take. A table that has grown was half as long before: that one is dead.
func (x *tables) room(f int) (n float64) {
	for m, k := range x.now[f] {
		if 2*m >= grownTable {
			k -= min(k, x.now[f][2*m])
		}
		n += loadFactor * float64(m*k)
	}
	return n
}

// like says whether the nodes of a family came as fast as the objects of a site, so many in so many seconds, as far as
// k samples tell.
func (h *detector) like(f int, grown, seconds, k float64) bool {
	n := len(h.Times)
	if len(h.tables.nodes) != n || n < 2 || k < 1 || grown <= 0 {
		return false
	}
	first, last := float64(h.tables.nodes[0][f]), float64(h.tables.nodes[n-1][f])
	x := (last - first) / (h.Times[n-1] - h.Times[0]) / (grown / seconds)
	return last >= leastNodes && nearly(x, k)
}

// nearly says whether a rate that k samples tell may be 1 if they tell x.
func nearly(x, k float64) bool {
	k /= 3 // more than three standard deviations on each side
	return x >= stats.HalfChi2(0, k)/k && x <= stats.HalfChi2(1, k+1)/k
}

// noded says of a site whose objects mostly die young whether nodes of the JDK's maps or linked collections came as
// fast as the others. An array that grows may hold those of any site, nodes are as many as what they hold.
func (h *detector) noded(s *history.Series, t, low []float64) bool {
	n, w, k := len(h.Times), t[len(t)-1]-t[0], float64(s.LiveSamples)
	grown, _ := h.held(s, t, low)
	if grown < leastNodes || k < fewestNoded || h.factor(t, low, h.watch()) < 2 || len(h.nodes) != n || n < 2 {
		return false
	}
	for f := range softReferences {
		if h.like(f, grown, w, k) {
			return true
		}
	}
	x := (float64(h.nodes[n-1]) - float64(h.nodes[0])) / (h.Times[n-1] - h.Times[0]) / (grown / w)
	return nearly(x, k)
}

// replaced says whether hash tables dropped what a series gained: nodes came as fast, and some of them have no room any
// more. Where the replay only counts there are no lengths of tables: open says that this decides.
func (h *detector) replaced(grown, seconds, k float64) (yes, open bool) {
	for f := range softReferences {
		if !h.like(f, grown, seconds, k) {
			continue
		}
		if h.counts {
			return false, true
		}
		if nodes := float64(h.tables.nodes[len(h.Times)-1][f]); nodes-h.tables.room(f) > (1-keptYoung)*grown {
			return true, false
		}
	}
	return false, false
}
