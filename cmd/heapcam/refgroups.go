package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/analysis/retention"
	"github.com/heapcam/heapcam/classify"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/reflisting"
	"github.com/heapcam/heapcam/ringstore"
)

// listings are the reference listings of a recording, for verbs that group objects.
type listings struct {
	rec *ringstore.Recording
	gcs []uint64
}

// listingsOf finds them. One that cannot be read is not among them.
func listingsOf(rec *ringstore.Recording) *listings {
	reaches, done, err := settledReaches(rec)
	defer done()
	if err != nil {
		return &listings{rec: rec}
	}
	return &listings{rec, reaches.GCs()}
}

// after says whether there is one after a collection, before the next one.
func (l *listings) after(gc uint64) bool { return slices.Contains(l.gcs, gc) }

// labels gives what classifiers that need a see of the objects of v, the state after collection gc, whose world is w.
// Without a, it marks what is garbage, if that is known. It says whether it does.
func (l *listings) label(v *heap.View, gc uint64, w *classify.World, a classify.Attr) (garbage bool, err error) {
	switch a &= classify.AttrRefs; {
	case a != 0 && !l.after(gc):
		return false, l.missing(gc)
	case v.State == nil || !l.after(gc):
		return false, nil
	case a == 0:
		return l.labelGarbage(v, gc, w)
	}
	o := retaining{at: strconv.FormatUint(gc, 10)}
	h, err := o.load(l.rec)
	if err != nil {
		return false, err
	}
	labels, refs := h.Labels(a | classify.AttrReach)
	v.Labelled(labels)
	w.Refs = refs
	return retention.Settles(h.Graph.L.Missing), nil
}

// labelGarbage needs less time and memory than all else.
func (l *listings) labelGarbage(v *heap.View, gc uint64, w *classify.World) (bool, error) {
	reaches, done, err := settledReaches(l.rec)
	defer done()
	if err != nil {
		return false, err
	}
	live, err := reaches.After(gc)
	if err != nil || live == nil || !live.Settles() {
		return false, err
	}
	labels, refs := live.Labels()
	v.Labelled(labels)
	w.Refs = refs
	return true, nil
}

// missing says that classifiers need a listing after collection gc.
func (l *listings) missing(gc uint64) error {
	if len(l.gcs) == 0 {
		of := &listingSources{rec: l.rec}
		defer of.close()
		return noListing(l.rec, of, reflisting.ErrNone)
	}
	var known []string
	for _, x := range l.gcs[max(0, len(l.gcs)-10):] {
		known = append(known, strconv.FormatUint(x, 10))
	}
	return withCode(exitNotFound, "%s: no reference listing after collection %d; there is one after collection %s: "+
		"name it with --at, --from or --to", l.rec.Path, gc, strings.Join(known, ", "))
}
