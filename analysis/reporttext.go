package analysis

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// The beginnings of headlines without a leak.
const (
	cannotTell = "Cannot tell whether the program leaks: "
	noLeak     = "No leak found. "
)

// fullShare is the share of the window in pauses from which on the heap counts as full.
const fullShare = 0.25

// headline answers whether the program leaks: what, where, how fast, since when and until when.
func (rep *Report) headline() ui.Flow {
	switch n := len(rep.Collections); {
	case n == 0:
		return cannotTell + "there is no collection in this recording."
	case len(rep.Suspects) > 0:
		return rep.leaks()
	case rep.Samples == 0:
		return cannotTell + leak.NoSamples + "."
	case rep.doubt != "":
		return cannotTell + rep.doubt + "."
	}
	return noLeak + rep.smallest + " would have been found with 95 % probability."
}

// leaks is the headline of a recording that shows one.
func (rep *Report) leaks() ui.Flow {
	v := rep.Suspects[0]
	kind := "Leak found"
	if v.Floors == 0 {
		kind = "Probable leak"
	}
	since := ui.Flowf("since %s UTC or earlier", ui.Flow(rep.From.UTC().Format(time.TimeOnly)))
	if rep.atStart && rep.Collections[0].GC == 1 {
		since = ui.Flowf("since the JVM started (first collection at %s UTC)",
			ui.Flow(rep.From.UTC().Format(time.TimeOnly)))
	}
	s := ui.Flowf("%s: %s grows by %s, %s.", ui.Flow(kind), v.What, v.Rate(), since)
	if x := rep.pauseShare(); x >= fullShare {
		return s + ui.Flowf(" The heap is nearly full: pauses took %s of the recorded time.", ui.Flow(ui.Share(x)))
	}
	at := ui.Flow(" after the end of this recording")
	if v.FullIn != nil && *v.FullIn < 24*3600 {
		end := rep.To.Add(time.Duration(*v.FullIn * 1e9)).UTC().Round(time.Minute)
		at += ui.Flowf(", at %s UTC", ui.Flow(end.Format("15:04")))
	}
	return s + " " + v.Exhaustion("At this rate the heap is full ", at)
}

func (rep *Report) pauseShare() float64 { return float64(rep.PauseNS) / float64(max(rep.WindowNS, 1)) }

// WriteText prints the report on one screen. name is how the recording was named; "" if it has no name.
func (rep *Report) WriteText(w io.Writer, name string) {
	style := ui.Doubt
	switch {
	case len(rep.Suspects) > 0:
		style = ui.Bad
	case strings.HasPrefix(string(rep.FirstLook), noLeak):
		style = ui.Good
	}
	ui.Headline(w, style, rep.FirstLook)
	if len(rep.Collections) > 0 {
		rep.writeLeaks(w)
		rep.writeWindow(w)
		rep.writeGrown(w)
		rep.writeTrust(w)
	}
	if name != "" {
		ui.Next(w, rep.next(name)...)
	}
}

// writeWindow prints what was recorded.
func (rep *Report) writeWindow(w io.Writer) {
	kinds := map[string]int{}
	var used []float64
	var longest, syncs uint64
	for _, c := range rep.Collections {
		kinds[c.Kind]++
		if c.known() {
			used = append(used, float64(c.Used))
		}
		longest = max(longest, c.PauseNS)
		if c.Synced {
			syncs++
		}
	}
	var ks []string
	for k, v := range kinds {
		ks = append(ks, fmt.Sprintf("%d %s", v, k))
	}
	slices.Sort(ks)
	first, last := &rep.Collections[0], &rep.Collections[len(rep.Collections)-1]
	ui.Section(w, "Recording")
	flow := func(s string) ui.Flow { return ui.Flow(s) }
	ui.Datum(w, "JVM", ui.Sprintf("%s, %s collector", rep.JVM, rep.Collector))
	ui.Field(w, "Time", ui.Flowf("%s to %s UTC (%s)", flow(rep.From.UTC().Format(time.DateTime)),
		flow(rep.To.UTC().Format(time.TimeOnly)), flow(ui.Nanoseconds(rep.WindowNS))))
	ui.Datum(w, "End", ui.Prose(rep.End))
	ui.Field(w, "Collections", ui.Flowf("%d (%s), numbers %d to %d; %d with a full listing (sync points)",
		len(rep.Collections), flow(strings.Join(ks, ", ")), first.GC, last.GC, syncs))
	ui.Field(w, "Pauses", ui.Flowf("%s in all, %s of the time; the longest %s", flow(ui.Nanoseconds(rep.PauseNS)),
		flow(ui.Share(rep.pauseShare())), flow(ui.Nanoseconds(longest))))
	ui.Field(w, "heapcam", ui.Flowf("%s of the pauses, %s of the time (sampling not included)",
		flow(ui.Nanoseconds(rep.ProbeNS)), flow(ui.Part(rep.ProbeNS, rep.WindowNS))))
	ui.Field(w, "Heap after GC", ui.Flowf("%s %s → %s", flow(ui.Spark(used, 60)), flow(ui.Bytes(first.Used)),
		flow(ui.Bytes(last.Used))))
}

// writeTrust prints what the figures rest on, and what is missing.
func (rep *Report) writeTrust(w io.Writer) {
	q := rep.Quality
	_, all := q.Live()
	share := func(n uint64) ui.Flow { return ui.Flow(ui.Part(n, all)) }
	ui.Section(w, "What the figures rest on")
	if all > 0 {
		ui.Field(w, "Sites known", ui.Flowf("for %s of the live bytes: %s exactly, %s inferred; %s unknown; %s "+
			"may be older than the recording", share(q.ExactBytes+q.InferredBytes), share(q.ExactBytes),
			share(q.InferredBytes), share(q.UnknownBytes), share(q.BeforeBytes)))
	} else {
		ui.Field(w, "Sites known", "the heap state is not known")
	}
	ui.Field(w, "Samples", ui.Flowf("%d allocations", rep.Samples))
	if rep.SitesCut != "" {
		ui.Datum(w, "Sites cut", ui.Prose(rep.SitesCut))
	}
	if rep.PartialGCs > 0 {
		ui.Field(w, "Listing", rep.ramp())
	}
	ui.Field(w, "Missing", rep.missing())
	collection.WriteMissed(w, "  No events", 16, rep.Missed)
	if rep.Uncompacted {
		ui.Field(w, "Dead objects", collection.MayCountDead)
	}
	if len(rep.Suspects) == 0 && rep.OldCollections == 0 {
		ui.Field(w, "Old space", "not collected in this recording: it is not known which objects died there")
	}
}

// ramp says when a listing that was spread over collections was complete.
func (rep *Report) ramp() ui.Flow {
	n := ui.Plural(uint64(rep.PartialGCs), "collection")
	if rep.CompleteAfter == 0 {
		last := &rep.Collections[len(rep.Collections)-1]
		return ui.Flowf("spread over %s and not complete: at the end %d objects are listed, %s are not", ui.Flow(n),
			last.Objects, ui.Flow(ui.Bytes(last.Unlisted)))
	}
	return ui.Flowf("spread over %s; complete after collection %d", ui.Flow(n), rep.CompleteAfter)
}

// missing says what is not in the recording.
func (rep *Report) missing() ui.Flow {
	var parts []string
	for _, x := range []struct {
		before string
		n      uint64
		what   string
	}{{"", rep.LostEpochs, "collection"}, {"", rep.LostSamples, "sample"},
		{"the heap state after ", uint64(rep.UnknownGCs), "collection"},
		{"", uint64(len(rep.Damage)), "damaged section"}} {
		if x.n > 0 {
			parts = append(parts, x.before+ui.Plural(x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return "nothing: no collection and no sample was lost"
	}
	return ui.Flow(strings.Join(parts, "; "))
}

// writeGrown prints which classes and sites grew most, and which sites have most.
func (rep *Report) writeGrown(w io.Writer) {
	c := ui.NewColumns(2, ">OBJECTS", ">BYTES", "CLASS")
	for _, g := range rep.Grown[:min(5, len(rep.Grown))] {
		c.Row(ui.Flowf("%+d", g.Objects), "+"+ui.Bytes(uint64(g.Bytes)), sites.WithLoader(g.Class, g.Loader))
	}
	if c.Len() > 0 {
		ui.Section(w, "Classes that grew most from the first to the last collection (uncollected garbage counts)")
		c.Write(w)
	}
	c = ui.NewColumns(2, ">OBJECTS", ">BYTES", "CLASS AND ALLOCATION SITE")
	for _, g := range rep.GrownSites[:min(3, len(rep.GrownSites))] {
		c.Row(ui.Flowf("%+d", g.Objects), "+"+ui.Bytes(uint64(g.Bytes)),
			ui.Flowf("%s %s", sites.ClassName(g.Class, g.Loader), sites.Place(g.Site)))
	}
	if c.Len() > 0 {
		ui.Section(w, "Allocation sites that grew most (estimated from samples)")
		c.Write(w)
	}
	c = ui.NewColumns(2, ">OBJECTS (95 % INTERVAL)", ">BYTES", "CLASS AND ALLOCATION SITE")
	for i, s := range rep.Sites {
		if i == 3 || s.Child != "" {
			break
		}
		c.Row(ui.Flowf("%d to %d", s.ObjectsLow, s.ObjectsHigh), ui.Bytes(s.Bytes),
			ui.Flowf("%s %s", sites.ClassName(s.Class, s.Loader), sites.Place(s.Site)))
	}
	if c.Len() > 0 {
		ui.Section(w, "Allocation sites with the most live bytes after the last collection (estimated from samples)")
		c.Write(w)
	}
}

// writeLeaks prints the verdicts.
func (rep *Report) writeLeaks(w io.Writer) {
	if len(rep.Suspects) == 0 {
		return
	}
	ui.Section(w, "Allocation sites whose objects stay and grow throughout the recording")
	c := ui.NewColumns(2, ">GROWTH", ">IN ALL", ">CONFIDENCE", "CLASS AND ALLOCATION SITE")
	for _, s := range rep.Suspects[:min(3, len(rep.Suspects))] {
		c.Row(s.Rate(), ui.Bytes(s.GrownBytes), ui.Share(s.Confidence), sites.WithLoader(s.Class, s.Loader))
		for j, f := range s.Site[:min(3, len(s.Site))] {
			more := ui.Text("")
			if j == 2 && len(s.Site) > 3 {
				more = ui.Sprintf("  (%d more)", len(s.Site)-3)
			}
			c.Under(6, ui.Sprintf("at %s%s", f, more))
		}
	}
	c.Write(w)
	if n := len(rep.Suspects); n > 3 {
		ui.Fprintf(w, "  and %d more: see heapcam leaks\n", n-3)
	}
	ui.Paragraph(w, "", 2, rep.Suspects[0].Proof())
}

// next gives the commands that lead on from this report of the recording name.
func (rep *Report) next(name string) (out []ui.Text) {
	file := ui.ShellWord(name)
	var first, last uint64 // with known state
	for _, c := range rep.Collections {
		if c.Known {
			if first == 0 {
				first = c.GC
			}
			last = c.GC
		}
	}
	if len(rep.Damage) > 0 {
		out = append(out, ui.Sprintf("heapcam verify %s", file))
	}
	switch {
	case len(rep.Collections) == 0:
		return append(out, ui.Sprintf("heapcam dump --brief %s", file))
	case len(rep.Suspects) > 0:
		out = append(out, ui.Sprintf("heapcam leaks %s", file))
	default:
		out = append(out, ui.Sprintf("heapcam histogram --sites %s", file))
	}
	out = append(out, ui.Sprintf("heapcam view %s", file))
	if first < last {
		out = append(out, ui.Sprintf("heapcam diff --from %d --to %d %s", first, last, file))
	}
	return out[:min(3, len(out))]
}
