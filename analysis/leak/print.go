package leak

import (
	"io"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// virtualThreads is the name under which the probe puts the allocations of all virtual threads.
const virtualThreads = "(virtual threads)"

// headline answers whether the program leaks: what, where, how fast, since when and until when; else how small a leak
// may be that would not be seen, or why nothing is known.
func (l *Report) headline() ui.Flow {
	switch {
	case len(l.Verdicts) > 0:
		s := l.Verdicts[0].Sentence
		if n := len(l.Verdicts) - 1; n > 0 {
			// no "below": a log line and `incidents show` have the headline alone
			s += ui.Flowf(" There %s %s.", map[bool]ui.Flow{true: "is", false: "are"}[n == 1],
				ui.Flow(ui.Plural(uint64(n), "other verdict")))
		}
		return s
	case l.Full != nil && l.Full.Large:
		return ui.Flowf("The heap had no room at %s: %s. What holds the heap is not known: %s.",
			ui.Flow(ui.Clock(l.Full.Time)), l.Full.Evidence, l.unnamed())
	case l.Full != nil:
		return ui.Flowf("The heap was full: %s of %s. What filled it is not known: %s.",
			ui.Flow(ui.Bytes(l.Full.UsedBytes)), ui.Flow(ui.Bytes(l.Full.MaxBytes)), l.unnamed())
	case l.doubt == FreesNothing:
		return "Cannot tell whether the program leaks: " + l.doubt + "."
	case l.doubt != "":
		return ui.Flowf("Cannot tell whether the program leaks: %s. %s", l.doubt, Advice(l.doubt))
	case l.Smallest > 0:
		finer := ui.Flow("")
		if s := finerThan(l.interval); s != "" {
			finer = ", or " + s + ","
		}
		open := l.unsettled()
		if open != "" {
			open += " The limit does not hold for that."
		}
		return ui.Flowf(noLeak+" above %s in %s and %s (95 %%).%s A longer window%s shows smaller leaks.",
			rate(l.Smallest), ui.Flow(ui.Seconds(l.Window)), ui.Flow(ui.Plural(uint64(l.Collections), "collection")),
			open, finer)
	}
	return ui.Flowf(noLeak+" in %s and %s.%s %s", ui.Flow(ui.Seconds(l.Window)),
		ui.Flow(ui.Plural(uint64(l.Collections), "collection")), l.unsettled(), l.smallest)
}

// finerThan names the flag that samples more often than each interval bytes; "" if more costs too much to be advised.
func finerThan(interval uint64) ui.Flow {
	switch {
	case interval > 64<<10:
		return "`--sampling 64KiB`"
	case interval > 16<<10:
		return "`--sampling 16KiB`"
	}
	return ""
}

// unsettled names what grew faster than the smallest leak that would be found and is not ruled out: a queue that grows
// looks like one that is full. "" if there is nothing of the kind.
func (l *Report) unsettled() ui.Flow {
	for i := range l.Misses {
		m := &l.Misses[i]
		if m.unsure(l.Collections) && float64(m.GrownBytes) > l.Smallest*l.Window {
			return ui.Flowf(" Not settled: %s %s grew by %s, but %s.", sites.ClassName(m.Class, ""), place(m.Site),
				ui.Flow(ui.Bytes(m.GrownBytes)), m.reason)
		}
	}
	return ""
}

// unnamed says why no verdict says what filled the heap.
func (l *Report) unnamed() ui.Flow {
	switch {
	case l.doubt != "":
		return l.doubt
	case l.watched:
		return "too few watched samples show what grew"
	}
	return "too few samples show what grew"
}

// noLeak begins the headline of a window that shows none.
const noLeak = "No leak found"

// Style is that of a headline.
func Style(all []Verdict, headline ui.Flow) ui.Style {
	switch {
	case slices.ContainsFunc(all, func(v Verdict) bool { return v.Kind != KindSuspect }):
		return ui.Bad
	case strings.HasPrefix(string(headline), noLeak):
		return ui.Good
	}
	return ui.Doubt
}

// fillsLater is how long a window must be, in seconds, so that few caches are not full by its end.
const fillsLater = 600

// found counts the verdicts, and says what settles suspects.
func (l *Report) found() ui.Flow {
	leaks, fills := uint64(l.Leaks()), uint64(0)
	suspects := uint64(len(l.Verdicts)) - leaks
	for i := range l.Verdicts {
		if l.Verdicts[i].Kind == KindFills {
			fills++
		}
	}
	s := ui.Flow(ui.Plural(leaks, "leak"))
	if fills == leaks { // one that filled a heap too small for it need not be a leak
		s = ui.Flow(ui.Plural(fills, "structure")) + " that filled the heap"
	}
	switch {
	case leaks == 0:
		s = ui.Flow(ui.Plural(suspects, "suspect")) + " and no proven leak"
	case suspects > 0:
		s += " and " + ui.Flow(ui.Plural(suspects, "suspect"))
	}
	s += ui.Flowf(" in %s and %s.", ui.Flow(ui.Seconds(l.Window)),
		ui.Flow(ui.Plural(uint64(l.Collections), "collection")))
	if leaks > fills && l.Window < fillsLater {
		s += " A cache that takes longer than that to fill up looks the same."
	}
	if leaks == 0 {
		s += " " + Settle(l.Verdicts, l.ended, l.byRun)
	}
	return s
}

// Settle says what settles suspects, of a JVM that has ended or not; byRun: `heapcam run` records it.
func Settle(all []Verdict, ended, byRun bool) ui.Flow {
	if !slices.ContainsFunc(all, func(v Verdict) bool { return v.evicts == "" }) {
		return "To settle it, record for longer, until a cache of this kind would be full."
	}
	if byRun && !ended {
		return "To settle it, look again later: `heapcam run` records references from time to time, and so shows " +
			"whether it grows further."
	}
	begin := ui.Flow("To settle it, run")
	if ended {
		begin = "To settle it next time, run"
	}
	begin += " `heapcam leaks --settle JVM`"
	switch once := !slices.ContainsFunc(all, func(v Verdict) bool { return !v.once && v.evicts == "" }); {
	case once && ended:
		return "To settle it next time, record for some minutes longer with `heapcam run`. Or, while an agent " +
			"records the JVM, run `heapcam leaks --settle JVM` twice, ten minutes or more apart. Both show " +
			"whether it grows further."
	case once:
		return begin + " ten minutes or more after the last reference listing: it shows whether it grows further."
	}
	return begin + " while an agent records the JVM: one short stop shows which objects live."
}

// WriteText prints verdicts for people. name is how the recording was named; "" if it has no name.
func (l *Report) WriteText(w io.Writer, name string) {
	ui.Headline(w, Style(l.Verdicts, l.Headline), l.Headline)
	if len(l.Verdicts) > 0 {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, l.found())
	}
	for i := range l.Verdicts {
		ui.Fprintf(w, "\n")
		v := &l.Verdicts[i]
		text := v.Sentence
		if i == 0 { // the headline has it
			text = v.What
		}
		ui.Paragraph(w, ui.Flowf("%2d.", i+1), 4, text)
		v.write(w)
	}
	if n := len(l.Small); n > 0 {
		ui.Section(w, "Small growth (less than --min-growth, or too little to matter in this window)")
		c := ui.NewColumns(2, ">GROWTH", ">GROWN", "CLASSES AND PLACE")
		for i := range l.Small[:min(n, 5)] {
			v := &l.Small[i]
			c.Row(v.Rate(), "+"+ui.Bytes(v.GrownBytes), v.What)
		}
		c.Write(w)
	}
	if len(l.Misses) > 0 && l.Leaks() == 0 {
		ui.Section(w, "What grew and is not reported as a leak")
		for i := range l.Misses {
			ui.Paragraph(w, "", 2, l.Misses[i].Text())
		}
	}
	if l.note != "" && len(l.Verdicts) == 0 && l.doubt == "" {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "Note:", 6, l.note)
	}
	collection.WriteMissed(w, "Note:", 6, l.Missed)
	if l.lostMany {
		ui.Paragraph(w, "Note:", 6, ui.Flowf("%s were lost: leaks may be larger than these figures, and others may "+
			"not be found.", ui.Flow(ui.Plural(l.LostSamples, "sample"))))
	}
	if name == "" {
		return
	}
	file := ui.ShellWord(name)
	next := []ui.Text{ui.Sprintf("heapcam view %s", file)}
	if !l.watched { // else there is no heap state: no history, and nothing to compare
		next = append(next, ui.Sprintf("heapcam history %s", file))
		if len(l.Verdicts) > 0 {
			next = append(next, ui.Sprintf("heapcam diff --from first --to last %s", file))
		}
	}
	ui.Next(w, next...)
}

// write prints what a verdict rests on.
func (v *Verdict) write(w io.Writer) {
	share := ui.Flow("")
	if v.Share > 0 { // else the heap is no larger at the end, as after an OutOfMemoryError that ended what filled it
		share = ui.Flowf(", %s of the heap's growth", ui.Flow(ui.Share(v.Share)))
	}
	ui.Paragraph(w, "    Growth", 16, ui.Flowf("%s to %s (95 %% interval); %s since the start%s, %s of the live heap",
		rate(v.BytesPerSecondLow), rate(v.BytesPerSecondHigh), ui.Flow(ui.Bytes(v.GrownBytes)), share,
		ui.Flow(ui.Share(v.HeapShare))))
	v.writeRates(w)
	sure := ui.Flow(ui.Share(v.Confidence)) + " that the growth is not chance"
	switch {
	case v.evicts != "":
		sure += "; whether they are dropped later is not known"
	case v.Kind == KindSuspect && v.seen == "": // else the sentence says it
		sure += "; whether the objects live is not known"
	}
	if v.Kind != KindFills {
		ui.Paragraph(w, "    Confidence", 16, sure)
	}
	if v.Thread != "" {
		name := ui.Flowf("%s", v.Thread)
		if v.Thread == virtualThreads {
			name = virtualThreads
		}
		ui.Paragraph(w, "    Thread", 16, name)
	}
	for i, m := range v.Members[:min(len(v.Members), shownMembers)] {
		if i == 0 {
			ui.Fprintf(w, "    Allocated\n")
			sites.WriteStack(w, m.Site, 6)
			if c := v.Callers; c != nil {
				ui.Fprintf(w, "    Called by, in %s of %s that end there\n", ui.Share(c.Share),
					ui.Plural(c.Samples, "sample"))
				sites.WriteStack(w, c.Stack[min(1, len(c.Stack)):], 6)
			}
			continue
		}
		if i == 1 {
			ui.Fprintf(w, "    With it\n")
		}
		ui.Beside(w, "       ", ui.Sprintf("%s/s %s %s", ui.Bytes(uint64(max(0, m.BytesPerSecond))),
			sites.WithLoader(m.Class, m.Loader), sites.Top(m.Site)))
	}
	if more := len(v.Members) - shownMembers; more > 0 {
		sum := 0.0
		for _, m := range v.Members[shownMembers:] {
			sum += max(0, m.BytesPerSecond)
		}
		ui.Fprintf(w, "       %s/s in %d more; --json has all\n", ui.Bytes(uint64(sum)), more)
	}
}

// shownMembers is how many sites of a data structure the text of a verdict has.
const shownMembers = 4
