package web

import (
	"fmt"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/internal/ui"
)

// Headline says one thing that happened, and where to look. View is a view's state as the page's address writes it.
type Headline struct {
	Kind string `json:"kind"` // leak, growth, storm, gap, damage, quiet
	Text string `json:"text"`
	View string `json:"view"`
}

// A storm of collections: at least stormLeast of them over stormSpan, one after the other, each of which took more than
// stormShare of the time up to the next.
const (
	stormLeast = 5
	stormShare = 0.25
	stormSpan  = time.Second
)

// headlines tells what happened, the most important first.
func headlines(r *analysis.Report) []Headline {
	out := []Headline{}
	n := len(r.Collections)
	if n == 0 {
		return append(out,
			Headline{"quiet", "There is no collection in this recording: nothing was collected, or it holds no data.",
				"coverage"})
	}
	for _, s := range r.Suspects[:min(len(r.Suspects), 3)] {
		out = append(out, Headline{"leak", string(s.Sentence), "leaks"})
	}
	if len(r.Grown) > 0 {
		g := r.Grown[0]
		out = append(out,
			Headline{"growth",
				fmt.Sprintf("%s grew most: %+d objects, +%s.", g.Class, g.Objects, ui.Bytes(uint64(g.Bytes))),
				fmt.Sprintf("diff?from=%d&to=%d", known(r.Collections, false), known(r.Collections, true))})
	}
	if from, to := storm(r.Collections); to > from {
		a, b := r.Collections[from], r.Collections[to]
		span := b.Time.Add(time.Duration(b.PauseNS)).Sub(a.Time)
		pauses := time.Duration(0)
		for _, c := range r.Collections[from : to+1] {
			pauses += time.Duration(c.PauseNS)
		}
		out = append(out,
			Headline{"storm",
				fmt.Sprintf("Storm: collections %d to %d took %.0f %% of %s.", a.GC, b.GC,
					100*float64(pauses)/float64(span), span.Round(10*time.Millisecond)),
				fmt.Sprintf("overview?from=%d&to=%d", a.GC, b.GC)})
	}
	if r.Missed > 0 {
		out = append(out,
			Headline{"gap",
				fmt.Sprintf("The JVM reported no events for %d collections: their pauses are unknown.", r.Missed),
				"coverage"})
	}
	if r.LostEpochs > 0 {
		out = append(out, Headline{"gap", fmt.Sprintf("%d collections were not recorded.", r.LostEpochs), "coverage"})
	}
	if r.UnknownGCs > 0 {
		out = append(out,
			Headline{"gap", fmt.Sprintf("The state is not known after %d of %d collections.", r.UnknownGCs, n),
				"coverage"})
	}
	if len(r.Damage) > 0 {
		out = append(out,
			Headline{"damage", fmt.Sprintf("%d parts of the recording can not be read.", len(r.Damage)), "coverage"})
	}
	if len(r.Suspects) == 0 {
		out = append(out, Headline{"quiet", string(r.FirstLook), "leaks"})
	}
	return out
}

// known gives the first or the last collection after which the state is known, 0 if there is none.
func known(rows []analysis.CollectionRow, last bool) uint64 {
	gc := uint64(0)
	for _, c := range rows {
		if c.Known {
			if gc = c.GC; !last {
				break
			}
		}
	}
	return gc
}

// storm gives the longest stretch that is one, as indexes of its first and last collection; from = to if there is none.
func storm(rows []analysis.CollectionRow) (from, to int) {
	begin := 0
	for i := range rows {
		if i > 0 {
			// the share of the pause before in the time from its start to this one
			gap := rows[i].Time.Sub(rows[i-1].Time)
			if gap <= 0 || float64(rows[i-1].PauseNS) <= stormShare*float64(gap) {
				begin = i
			}
		}
		if i-begin+1 >= stormLeast && i-begin > to-from && rows[i].Time.Sub(rows[begin].Time) >= stormSpan {
			from, to = begin, i
		}
	}
	return from, to
}
