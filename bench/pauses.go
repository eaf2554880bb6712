package main

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// added is by how much the probe lengthened one pause, in ns: in all, of that by what it listed, and how long the pause
// was without it.
type added struct{ all, listing, rest uint64 }

// pauses collects the pauses of one recording.
type pauses []added

// epoch takes in a pause. One that heapcam caused itself is all its own.
func (p *pauses) epoch(e trace.Pause) {
	if e.Kind == trace.PauseWalk {
		*p = append(*p, added{all: e.Dur, listing: e.Dur})
		return
	}
	*p = append(*p, added{all: e.Probe, rest: e.Dur - min(e.Dur, e.Probe)})
}

// listing takes in what was listed in the newest pause.
func (p pauses) listing(ns uint64) {
	if len(p) == 0 {
		return
	}
	last := &p[len(p)-1]
	last.listing += ns
	if last.rest > 0 {
		last.all += ns
	}
}

// over says that ns is more than what a pause may be lengthened by: 10 ms or a fifth of it, whichever is more.
func (a added) over(ns uint64) bool { return ns > max(10_000_000, a.rest/5) }

// fill puts into r what it says of pauses.
func (p pauses) fill(r *row) {
	r.Epochs += len(p)
	for _, a := range p {
		if a.over(a.all) {
			r.Over++
		}
		if a.over(a.listing) {
			r.OverSync++
		}
		r.Added = append(r.Added, a.all)
	}
	slices.SortFunc(r.Added, func(a, b uint64) int { return cmp.Compare(b, a) })
	r.Added = r.Added[:min(20, len(r.Added))]
}
