package leak

import (
	"io"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// headline says in a line what the report has.
func (l *Report) headline() (style ui.Style, text ui.Flow) {
	of := ui.Flowf("in %s and %s", ui.Flow(ui.Seconds(l.Window)),
		ui.Flow(ui.Plural(uint64(l.Collections), "collection")))
	leaks := uint64(l.Leaks())
	suspects := uint64(len(l.Verdicts)) - leaks
	switch {
	case leaks > 0 && suspects > 0:
		return ui.Bad, ui.Flowf("%s and %s found %s", ui.Flow(ui.Plural(leaks, "leak")),
			ui.Flow(ui.Plural(suspects, "suspect")), of)
	case leaks > 0:
		return ui.Bad, ui.Flowf("%s found %s", ui.Flow(ui.Plural(leaks, "leak")), of)
	case suspects > 0:
		return ui.Doubt, ui.Flowf("%s found %s, and no proven leak. %s", ui.Flow(ui.Plural(suspects, "suspect")), of,
			Settle)
	case l.doubt != "":
		return ui.Doubt, ui.Flowf("Cannot tell whether the program leaks: %s. %s", l.doubt, Advice(l.doubt))
	}
	return ui.Good, ui.Flowf("No leak found %s. %s", of, l.smallest)
}

// WriteText prints verdicts for people. name is how the recording was named; "" if it has no name.
func (l *Report) WriteText(w io.Writer, name string) {
	style, text := l.headline()
	ui.Headline(w, style, text)
	for i := range l.Verdicts {
		ui.Fprintf(w, "\n")
		l.Verdicts[i].write(w, ui.Flowf("%2d.", i+1))
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
		ui.Section(w, "What grew and is not named")
		for i := range l.Misses {
			ui.Paragraph(w, "", 2, l.Misses[i].Sentence)
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
	next := []ui.Text{ui.Sprintf("heapcam view %s", file), ui.Sprintf("heapcam history %s", file)}
	if len(l.Verdicts) > 0 && !l.watched { // there is no heap state to compare
		next = append(next, ui.Sprintf("heapcam diff --from first --to last %s", file))
	}
	ui.Next(w, next...)
}

// write prints one verdict.
func (v *Verdict) write(w io.Writer, number ui.Flow) {
	ui.Paragraph(w, number, 4, v.Sentence)
	ui.Paragraph(w, "    Growth", 16, ui.Flowf("%s to %s (95 %% interval); %s since the start, %s of the heap's "+
		"growth, %s of the live heap", rate(v.BytesPerSecondLow), rate(v.BytesPerSecondHigh),
		ui.Flow(ui.Bytes(v.GrownBytes)), ui.Flow(ui.Share(v.Share)), ui.Flow(ui.Share(v.HeapShare))))
	sure := ui.Flow(ui.Share(v.Confidence)) + " that the growth is not chance"
	if v.Kind == KindSuspect {
		sure += "; whether the objects live is not known"
	}
	if v.Kind != KindFills {
		ui.Paragraph(w, "    Confidence", 16, sure)
	}
	if v.Thread != "" {
		ui.Paragraph(w, "    Thread", 16, ui.Flowf("%s", v.Thread))
	}
	for i, m := range v.Members[:min(len(v.Members), 4)] {
		if i == 0 {
			ui.Fprintf(w, "    Allocated\n")
			sites.WriteStack(w, m.Site, 6)
			continue
		}
		if i == 1 {
			ui.Fprintf(w, "    With it\n")
		}
		ui.Beside(w, "       ", ui.Sprintf("%s/s %s %s", ui.Bytes(uint64(max(0, m.BytesPerSecond))),
			sites.WithLoader(m.Class, m.Loader), sites.Top(m.Site)))
	}
}
