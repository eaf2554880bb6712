package analysis

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/leak"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
	"github.com/heapcam/heapcam/trace"
)

func (rep *Report) pauseShare() float64 { return float64(rep.PauseNS) / float64(max(rep.WindowNS, 1)) }

// WriteText prints the report on one screen. name is how the recording was named; "" if it has no name.
func (rep *Report) WriteText(w io.Writer, name string) {
	ui.Headline(w, leak.Style(rep.Verdicts, rep.FirstLook), rep.FirstLook)
	if rep.Limits != "" {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "Note:", 6, rep.Limits)
	}
	if len(rep.Collections) > 0 {
		rep.writeLeaks(w)
		rep.writeWindow(w)
		if rep.Process != nil {
			rep.Process.write(w)
		}
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
	var longest, syncs uint64
	for _, c := range rep.Collections {
		kinds[c.Kind]++
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
	if rep.Watched != nil {
		longest = rep.Watched.LongestNS
	}
	ui.Section(w, "Recording")
	flow := func(s string) ui.Flow { return ui.Flow(s) }
	ui.Datum(w, "JVM", ui.Sprintf("%s, %s collector", rep.JVM, rep.Collector))
	if who := rep.Resource.String(); who != "" {
		ui.Datum(w, "Service", ui.Sprintf("%s", who))
	}
	if len(rep.Collections) == 1 {
		ui.Field(w, "Time", ui.Flowf("%s, of the only collection", flow(ui.Time(rep.To))))
	} else {
		ui.Field(w, "Time", ui.Flowf("%s to %s (%s)", flow(rep.From.Local().Format(time.DateTime)),
			flow(ui.Clock(rep.To)), flow(ui.Nanoseconds(rep.WindowNS))))
	}
	if rep.Ending == EndingStopped { // what the JVM's side wrote stays in one line
		ui.Datum(w, "End", ui.Prose(rep.End))
	} else {
		ui.Field(w, "End", flow(rep.End))
	}
	ui.Field(w, "Collections", rep.collectionsText(ks, syncs))
	if len(rep.Collections) == 1 { // a share of the time between collections says nothing
		ui.Field(w, "Pauses", ui.Flowf("%s in all; the longest %s", flow(ui.Nanoseconds(rep.PauseNS)),
			flow(ui.Nanoseconds(longest))))
	} else {
		ui.Field(w, "Pauses", ui.Flowf("%s in all, %s of the time; the longest %s", flow(ui.Nanoseconds(rep.PauseNS)),
			flow(ui.Share(rep.pauseShare())), flow(ui.Nanoseconds(longest))))
	}
	if a := rep.Advice; a != nil {
		ui.Field(w, "Heap size", ui.Flowf("%s would halve the time in collections, from %s to %s (at most %s): see "+
			"`heapcam whatif`", flow(ui.Bytes(a.Heap)), flow(ui.Seconds(a.Before)), flow(ui.Seconds(a.After.Value)),
			flow(ui.Seconds(a.After.High))))
	}
	least, sampling := flow(""), ui.Flowf("sampling %s", flow(ui.Nanoseconds(rep.Cost.Sampling)))
	if rep.SamplingUntil != nil {
		least, sampling = "at least ", "sampling as far as it is known"
	}
	ui.Field(w, "heapcam cost", ui.Flowf("%s%s of the time: %s in pauses and stops of its own, and %s", least,
		flow(ui.Share(rep.Cost.Share())), flow(ui.Nanoseconds(rep.Cost.Stopped())), sampling))
	rep.writeUsed(w)
	if g := rep.Garbage; g != nil {
		ui.Field(w, "Garbage", ui.Flowf("%s of %s in old space after collection %d, %s: it was not collected yet",
			flow(ui.Part(g.Unreached+g.Weak, g.Old)), flow(ui.Bytes(g.Old)), g.GC, flow(ui.Clock(g.Time))))
	}
}

// writeUsed prints what was in use after each collection. A reading is none: nothing has collected what is in use then.
// Without any collection, as with Epsilon, the readings are all there is.
func (rep *Report) writeUsed(w io.Writer) {
	what, reading := ui.Flow("Heap after GC"), trace.PauseKindNames.String(trace.PauseReading)
	if cycles, _ := rep.cycles(); cycles == 0 {
		what, reading = "Heap in use", ""
	}
	var used []float64
	for _, c := range rep.Collections {
		if c.known() && c.Kind != reading {
			used = append(used, float64(c.Used))
		}
	}
	if len(used) == 0 {
		return
	}
	ui.Field(w, what, ui.Flowf("%s %s (first → last%s)", ui.Flow(ui.Spark(used, 40)),
		firstToLast(ui.Bytes(uint64(used[0])), ui.Bytes(uint64(used[len(used)-1]))), rep.limit()))
}

// limit says how large the heap may become.
func (rep *Report) limit() ui.Flow {
	if rep.MaxHeap == 0 {
		return ""
	}
	return ui.Flowf("; the limit is %s", ui.Flow(ui.Bytes(rep.MaxHeap)))
}

// writeTrust prints what the figures rest on, and what is missing.
func (rep *Report) writeTrust(w io.Writer) {
	if rep.Watched != nil {
		rep.writeWatched(w)
		return
	}
	ui.Section(w, "How reliable the figures are")
	ui.Field(w, "Sites known", rep.Quality.Sentence())
	ui.Field(w, "Samples", rep.samplesText())
	if rep.SitesCut != "" {
		ui.Datum(w, "Sites cut", ui.Prose(rep.SitesCut))
	}
	if rep.PartialGCs > 0 {
		ui.Field(w, "Listing", rep.ramp())
	}
	if rep.LeftOut > 0 {
		ui.Field(w, "Storm", ui.Flowf("of %s, one after the other, only pauses and totals are known: heapcam listed "+
			"the heap after some, so as not to take more than a few percent of the time",
			ui.Flow(ui.Plural(uint64(rep.LeftOut), "collection"))))
	}
	ui.Field(w, "Missing", rep.missing())
	collection.WriteMissed(w, "  No events", 16, rep.Missed)
	if rep.Uncompacted {
		ui.Field(w, "Dead objects", collection.MayCountDead)
	}
	if len(rep.Verdicts) == 0 && rep.OldCollections == 0 && rep.Garbage == nil {
		ui.Field(w, "Old space", "not collected in this recording: it is not known which objects died there")
	}
}

// samplesText says how many allocations were sampled, and what was asked for in vain.
func (rep *Report) samplesText() ui.Flow {
	s := ui.Flowf("%d allocations", rep.Samples)
	if given := rep.GivenUp(rep.LostSamples); given != "" {
		s += ui.Flowf("; now one sample in %s: %s", ui.Flow(ui.Bytes(rep.Interval)), given)
	}
	return s
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
	t := collection.Gone{Epochs: rep.LostEpochs, Samples: rep.LostSamples, States: uint64(rep.UnknownGCs),
		Damaged: uint64(len(rep.Damage))}.Text()
	_, last := rep.known()
	if i := slices.IndexFunc(rep.Collections, func(c CollectionRow) bool {
		return c.GC > last && last > 0 && !c.Partial && rep.LeftOut == 0
	}); i >= 0 {
		c := &rep.Collections[i]
		t += ui.Flowf(". The heap state is unknown from collection %d on, %s: `heapcam cost` says what changed there",
			c.GC, ui.Flow(ui.Time(c.Time)))
	}
	return t
}

// writeGrown prints which classes and sites grew most, and which sites have most.
func (rep *Report) writeGrown(w io.Writer) {
	if rep.Watched != nil {
		rep.writeWatchedSites(w)
		return
	}
	c := ui.NewColumns(2, ">OBJECTS", ">BYTES", "CLASS")
	for _, g := range rep.Grown[:min(5, len(rep.Grown))] {
		c.Row(ui.Flowf("%+d", g.Objects), "+"+ui.Bytes(uint64(g.Bytes)), sites.WithLoader(g.Class, g.Loader))
	}
	if c.Len() > 0 {
		first, last := rep.known()
		ui.Section(w, ui.Flowf("Classes that grew most from collection %d to %d (uncollected garbage "+
			"counts)", first, last))
		c.Write(w)
		if rep.Fillers != nil {
			ui.Paragraph(w, "", 2, rep.Fillers.text())
		}
	}
	c = ui.NewColumns(2, ">OBJECTS", ">BYTES", "CLASS AND ALLOCATION SITE")
	grown := rep.GrownSites[:min(3, len(rep.GrownSites))]
	at := classesAt(grown, func(g sites.GrownRow) (ui.Flow, []sites.StackFrame) {
		return sites.ClassName(g.Class, g.Loader), g.Site
	})
	for i, g := range grown {
		c.Row(ui.Flowf("%+d", g.Objects), "+"+ui.Bytes(uint64(g.Bytes)), at[i])
	}
	if c.Len() > 0 {
		ui.Section(w, ui.Flowf("Allocation sites that grew most (%s)", sites.GrownBasis(grown, rep.Sites)))
		c.Write(w)
	}
	c = ui.NewColumns(2, ">OBJECTS", ">95 % INTERVAL", ">BYTES", "CLASS AND ALLOCATION SITE")
	most := rep.Sites[:min(3, len(rep.Sites))]
	if i := slices.IndexFunc(most, func(s sites.Row) bool { return s.Child != "" }); i >= 0 {
		most = most[:i]
	}
	for i, at := range classesAt(most, classAt) {
		s := most[i]
		c.Row(s.Objects, ui.Flowf("%d to %d", s.ObjectsLow, s.ObjectsHigh), ui.Bytes(s.Bytes), at)
	}
	if c.Len() > 0 {
		_, last := rep.known()
		ui.Section(w, ui.Flowf("Allocation sites with the most live bytes after collection %d (%s)", last,
			sites.Basis(most)))
		c.Write(w)
	}
}

// classAt gives class and site of a row.
func classAt(s sites.Row) (ui.Flow, []sites.StackFrame) {
	if s.Proven {
		return sites.ClassName(s.Class, s.Loader) + " (proven)", s.Site
	}
	return sites.ClassName(s.Class, s.Loader), s.Site
}

// classesAt gives the classes and places of rows.
func classesAt[T any](rows []T, of func(T) (ui.Flow, []sites.StackFrame)) []ui.Flow {
	names, stacks := make([]ui.Flow, len(rows)), make([][]sites.StackFrame, len(rows))
	for i, row := range rows {
		names[i], stacks[i] = of(row)
	}
	out := sites.Places(names, stacks)
	for i := range out {
		out[i] = names[i] + " " + out[i]
	}
	return out
}

// writeLeaks prints the verdicts.
func (rep *Report) writeLeaks(w io.Writer) {
	if len(rep.Verdicts) == 0 {
		if len(rep.Misses) > 0 {
			ui.Section(w, "What grew and is not reported as a leak")
		}
		for i := range rep.Misses[:min(1, len(rep.Misses))] {
			ui.Paragraph(w, "", 2, rep.Misses[i].Text())
		}
		return
	}
	ui.Section(w, "What grows and is not released")
	c := ui.NewColumns(2, ">GROWTH", ">SINCE START", "VERDICT", "CLASSES AND PLACE")
	for _, s := range rep.Verdicts[:min(3, len(rep.Verdicts))] {
		c.Row(s.Rate(), ui.Bytes(s.GrownBytes), s.Kind, s.What)
		// the innermost frame, and from the line that can be changed on; between them may be many of a library
		at := max(0, slices.Index(s.Site, s.Place))
		shown := append(slices.Clone(s.Site[:min(1, at)]), s.Site[at:min(at+3-min(1, at), len(s.Site))]...)
		for j, f := range shown {
			more := ui.Text("")
			if n := len(s.Site) - len(shown); j == len(shown)-1 && n > 0 {
				more = ui.Sprintf("  (%d more)", n)
			}
			c.Under(6, ui.Sprintf("at %s%s", f, more))
		}
	}
	c.Write(w)
	if n := len(rep.Verdicts); n > 3 {
		ui.Fprintf(w, "  and %d more: see heapcam leaks\n", n-3)
	}
	if rep.Verdicts[0].Kind == leak.KindSuspect {
		ui.Paragraph(w, "", 2, leak.Settle(rep.Verdicts, rep.Ending == EndingJVM || rep.Over, rep.ByRun))
	}
}

// known gives the first and the last collection whose heap state is known, 0 if there is none.
func (rep *Report) known() (first, last uint64) {
	for _, c := range rep.Collections {
		if c.Known {
			if first == 0 {
				first = c.GC
			}
			last = c.GC
		}
	}
	return first, last
}

// stale says whether the last collection whose state is known lies before the last quarter of the recording.
func (rep *Report) stale(last uint64) bool {
	i := slices.IndexFunc(rep.Collections, func(c CollectionRow) bool { return c.GC == last })
	return i < len(rep.Collections)*3/4
}

// next gives the commands that lead on from this report of the recording name.
func (rep *Report) next(name string) (out []ui.Text) {
	file := ui.ShellWord(name)
	first, last := rep.known()
	if len(rep.Damage) > 0 {
		out = append(out, ui.Sprintf("heapcam verify %s", file))
	}
	switch {
	case len(rep.Collections) == 0:
		return append(out, ui.Sprintf("heapcam dump --brief %s", file))
	case len(rep.Verdicts) > 0:
		out = append(out, ui.Sprintf("heapcam leaks %s", file))
	case last > 0:
		out = append(out, ui.Sprintf("heapcam histogram --sites %s", file))
	}
	out = append(out, ui.Sprintf("heapcam view %s", file))
	if rep.stale(last) && rep.ListedFirst < rep.ListedLast {
		out = append(out, ui.Sprintf("heapcam dominators --by class --since %d %s", rep.ListedFirst, file))
	} else if first < last {
		out = append(out, ui.Sprintf("heapcam diff --from %d --to %d %s", first, last, file))
	}
	return out[:min(3, len(out))]
}
