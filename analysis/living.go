package analysis

import (
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// living has the live samples after the last collection after which the heap state is known. It looks only at those
// that a collection changed: a copy of all live samples after each would cost more than reading the recording.
type living struct {
	sites.State
	by      heap.Live // by id
	changed []uint64  // since then: ids of samples that became live or died
}

func newLiving(s *heap.Symbols) *living {
	return &living{State: sites.State{Symbols: s}}
}

// follow takes in the newest collection, once.
func (l *living) follow(r *heap.Cursor, known bool) {
	for _, x := range r.Died {
		l.changed = append(l.changed, x.ID)
	}
	for _, x := range r.Resolved {
		l.changed = append(l.changed, x.ID)
	}
	for _, x := range r.Retold {
		l.changed = append(l.changed, x.ID)
	}
	if !known {
		return
	}
	for _, id := range l.changed {
		if x := r.Live.Get(id); x != nil {
			l.by.Put(id, x)
		} else {
			l.by.Delete(id)
		}
	}
	l.changed = l.changed[:0]
}
