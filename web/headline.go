package web

import (
	"fmt"
	"strings"
	"time"

	"github.com/heapcam/heapcam/analysis"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

// Headline is one finding of the overview: what happened, and the view that shows more. View is written as in the
// page's address.
type Headline struct {
	// leak, suspect, growth, storm, gap, damage, quiet, unknown or empty; while the recording is read used, storm, cost
	// or likely
	Kind string `json:"kind"`
	Text string `json:"text"`
	View string `json:"view"`
	// Since is when the growth of a leak, or a storm, began. It is a field of its own because the page shows times in
	// the reader's time zone.
	Since *time.Time `json:"since,omitempty"`
}

// A storm is a part of the window, at least stormLeast collections over at least stormSpan, in which pauses took more
// than stormShare of the time.
const (
	stormLeast = 5
	stormShare = 0.25
	stormSpan  = time.Second
)

// maxLeaks is how many leaks the overview names. The view `leaks` shows all.
const maxLeaks = 3

// headlines returns the findings of a report, the most important first: is it leaking, what, where and since when;
// then what grew, frequent collections, and what the recording lacks.
func headlines(r *analysis.Report) []Headline {
	n := len(r.Collections)
	if n == 0 {
		return []Headline{{Kind: "empty", View: "coverage",
			Text: string(r.FirstLook)}}
	}
	out := []Headline{}
	for i := range r.Verdicts[:min(len(r.Verdicts), maxLeaks)] {
		v := &r.Verdicts[i]
		kind := "leak"
		if v.Kind == leak.KindSuspect { // old space was not collected: the objects may be dead
			kind = "suspect"
		}
		out = append(out, Headline{Kind: kind, Text: string(v.Sentence), View: "leaks", Since: &v.OnsetFrom})
	}
	if len(r.Verdicts) == 0 {
		kind := "unknown" // a window that is too short is no good news
		if leak.Style(nil, r.FirstLook) == ui.Good {
			kind = "quiet"
		}
		out = append(out, Headline{Kind: kind, Text: string(r.FirstLook), View: "leaks"})
	}
	out = append(out, grew(r)...)
	if from, to := storm(r.Collections); to > from {
		out = append(out, stormHeadline(r.Collections[from:to+1]))
	}
	return append(out, gaps(r)...)
}

// grew says what grew most, if no verdict names it: a second class beside a verdict, or growth without its reason below
// "no leak found", reads as an alarm.
func grew(r *analysis.Report) []Headline {
	switch {
	case len(r.Verdicts) > 0:
		return nil
	case len(r.Misses) > 0 && strings.Contains(string(r.FirstLook), "Not settled"): // it says what grew, and why not
		return nil
	case len(r.Misses) > 0:
		return []Headline{{Kind: "growth", Text: string(r.Misses[0].Sentence), View: "leaks"}}
	case len(r.Grown) == 0:
		return nil
	}
	g, from, to := r.Grown[0], known(r.Collections, false), known(r.Collections, true)
	return []Headline{{Kind: "growth",
		Text: string(ui.Sprintf("%s grew most from collection %s to %s: by %s and %s, including garbage that "+
			"is not collected yet.", sites.WithLoader(g.Class, g.Loader), ui.Count(from), ui.Count(to),
			objects(g.Objects), ui.Bytes(g.Bytes))),
		View: fmt.Sprintf("diff?from=%d&to=%d", from, to)}}
}

// soFar says what the pauses alone show of a recording that is still being read: how much of the heap stays in use,
// and frequent collections.
func soFar(r *analysis.Report) []Headline {
	out := []Headline{}
	var old []analysis.CollectionRow
	for _, c := range r.Collections {
		if c.Kind == trace.PauseKindNames.String(trace.PauseFull) {
			old = append(old, c)
		}
	}
	rows, after := old, "full collection"
	if len(old) < 2 {
		rows, after = r.Collections, "collection"
	}
	if len(rows) > 1 {
		a, b := rows[0], rows[len(rows)-1]
		text := fmt.Sprintf("%s after the first %s, %s after the last.", ui.Bytes(a.Used), after, ui.Bytes(b.Used))
		if len(old) < 2 {
			text = fmt.Sprintf("%s after the first %s, %s after the last, with garbage that is not collected yet.",
				ui.Bytes(a.Used), after, ui.Bytes(b.Used))
		}
		out = append(out, Headline{Kind: "used", Text: text, View: "overview"})
	}
	if from, to := storm(r.Collections); to > from {
		out = append(out, stormHeadline(r.Collections[from:to+1]))
	}
	if n := len(r.Collections); n > 1 {
		if all := r.Collections[n-1].Time.Sub(r.Collections[0].Time); all > 0 {
			out = append(out, Headline{Kind: "cost", View: "cost",
				Text: fmt.Sprintf("made GC pauses longer by at least %s, %s of the time. Sampling and sync points are "+
					"not counted yet.", ui.Nanoseconds(r.ProbeNS), ui.Share(float64(r.ProbeNS)/float64(all)))})
		}
	}
	return out
}

// likely are the verdicts of a report that reference listings, or a replay of all objects, must still confirm.
func likely(r *analysis.Report) []Headline {
	out, all := []Headline{}, r.Verdicts
	if r.Open {
		all = r.Likely
	}
	for _, v := range all[:min(len(all), maxLeaks)] {
		out = append(out, Headline{Kind: "likely", Text: string(v.Sentence), View: "leaks"})
	}
	return out
}

// stormHeadline says which share of their time the collections of a storm took.
func stormHeadline(rows []analysis.CollectionRow) Headline {
	first, last := rows[0], rows[len(rows)-1]
	all := last.Time.Add(time.Duration(last.PauseNS)).Sub(first.Time)
	pauses := time.Duration(0)
	for _, c := range rows {
		pauses += time.Duration(c.PauseNS)
	}
	return Headline{Kind: "storm", Since: &first.Time,
		Text: fmt.Sprintf("GC pauses took %.1f %% of the time for %s", 100*float64(pauses)/float64(all), duration(all)),
		View: fmt.Sprintf("overview?from=%d&to=%d", first.GC, last.GC)}
}

// gaps says what the recording lacks.
func gaps(r *analysis.Report) (out []Headline) {
	add := func(kind, text string) { out = append(out, Headline{Kind: kind, Text: text, View: "coverage"}) }
	if r.Missed > 0 {
		add("gap", fmt.Sprintf("Missed collections: %s. The JVM did not report them, so their pauses are unknown.",
			ui.Count(r.Missed)))
	}
	if r.LostEpochs > 0 {
		add("gap", fmt.Sprintf("Lost collections: %s. The recording has no data about them.", ui.Count(r.LostEpochs)))
	}
	if r.UnknownGCs > 0 {
		text := fmt.Sprintf("The heap state is unknown for %s of %s", ui.Count(uint64(r.UnknownGCs)),
			ui.Plural(uint64(len(r.Collections)), "collection"))
		if of := unknownTime(r.Collections); of > 0 {
			text += fmt.Sprintf(", %s in all", duration(of))
		}
		if r.UnknownGCs < len(r.Collections) {
			text += ". What is said of the heap rests on the others"
		}
		add("gap", text+".")
	}
	if len(r.Damage) > 0 {
		add("damage", fmt.Sprintf("Damaged sections: %s. Their data cannot be read.", ui.Count(uint64(len(r.Damage)))))
	}
	return out
}

// unknownTime is how long the state of the heap was unknown: from a collection after which it is to the next one.
func unknownTime(rows []analysis.CollectionRow) (n time.Duration) {
	for i := range len(rows) - 1 {
		if !rows[i].Known && !rows[i].Partial {
			n += max(0, rows[i+1].Time.Sub(rows[i].Time))
		}
	}
	return n
}

// known returns the first or the last collection whose heap state is known, 0 if there is none.
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

// storm returns the indexes of the first and last collection of the largest storm; from = to if there is none. It is
// the part of the window whose pauses exceed stormShare of its time by most: one longer break does not end it.
func storm(rows []analysis.CollectionRow) (from, to int) {
	begin, sum, peak, most := 0, 0.0, 0.0, 0.0 // peak: of sum since begin
	for i := range rows {
		if i > 0 {
			sum -= stormShare * float64(max(rows[i].Time.Sub(rows[i-1].Time), 0))
		}
		if sum <= 0 {
			begin, sum, peak = i, 0, 0
		}
		sum += float64(rows[i].PauseNS)
		if sum <= peak {
			continue
		}
		peak = sum
		if sum > most && i-begin+1 >= stormLeast && rows[i].Time.Sub(rows[begin].Time) >= stormSpan {
			from, to, most = begin, i, sum
		}
	}
	return from, to
}
