package retention

import (
	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// Tally counts objects by their reach.
type Tally struct{ Live, Weak, Unreached heap.Count }

// All is the sum.
func (t *Tally) All() heap.Count {
	return heap.Count{Objects: t.Live.Objects + t.Weak.Objects + t.Unreached.Objects,
		Bytes: t.Live.Bytes + t.Weak.Bytes + t.Unreached.Bytes}
}

// Dead is what nothing keeps alive: what weak and phantom references alone lead to, too.
func (t *Tally) Dead() heap.Count {
	return heap.Count{Objects: t.Weak.Objects + t.Unreached.Objects, Bytes: t.Weak.Bytes + t.Unreached.Bytes}
}

func (t *Tally) add(r Reach, words uint32) {
	to := [...]*heap.Count{Live: &t.Live, Weak: &t.Weak, Unreached: &t.Unreached}[r]
	to.Objects++
	to.Bytes += uint64(words) * 8
}

// Old says whether a space is old: humongous objects count.
func Old(kind uint64) bool {
	return kind == trace.SpaceOld || kind == trace.SpaceHumongous || kind == trace.SpaceHumongousCont
}

// Alive counts what something keeps alive, by type id.
func (l *Liveness) Alive() []heap.Count {
	var out []heap.Count
	for i, typ := range l.typ {
		if l.words[i] == 0 || l.level[i] != graph.Kept || typ >= mostTypes {
			continue
		}
		for int(typ) >= len(out) {
			out = append(out, make([]heap.Count, len(out)+1024)...)
		}
		out[typ].Objects++
		out[typ].Bytes += uint64(l.words[i]) * 8
	}
	return out
}

// mostTypes bounds the ids of types that Alive counts.
const mostTypes = 1 << 22

// BySpace counts the objects in those of spaces, as heap.View.Spaces gives them after collection GC, that want wants:
// all together, and by type. What fills a hole is no object.
func (l *Liveness) BySpace(spaces []heap.SpaceAt, want func(kind uint64) bool) (all Tally, types map[uint32]*Tally) {
	types = map[uint32]*Tally{}
	i := 0
	for _, s := range spaces {
		for i < len(l.addr) && uint64(l.addr[i]) < s.Start {
			i++
		}
		for ; i < len(l.addr) && uint64(l.addr[i]) < s.End; i++ {
			if !want(s.Kind) || l.words[i] == 0 {
				continue
			}
			t := types[l.typ[i]]
			if t == nil {
				t = &Tally{}
				types[l.typ[i]] = t
			}
			t.add(reaches[l.level[i]], l.words[i])
			all.add(reaches[l.level[i]], l.words[i])
		}
	}
	return all, types
}
