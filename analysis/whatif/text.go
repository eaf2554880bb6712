package whatif

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/heapcam/heapcam/internal/ui"
)

// WriteText prints the report.
func (r *Report) WriteText(w io.Writer) {
	c := &r.Check
	c.headline(w)
	ui.Section(w, "Recorded configuration")
	if c.Recorded.config.regional() {
		ui.Field(w, "Heap", ui.Flowf("G1 collector, %s in regions of %s, eden of %s to %s", bytes(c.Recorded.Heap),
			bytes(8*c.Recorded.config.Region), bytes(8*c.Recorded.config.Least), bytes(c.Recorded.Eden)))
	} else {
		ui.Field(w, "Heap", ui.Flowf("%s collector, %s young (eden %s, two survivor spaces of %s), %s old, tenuring "+
			"threshold %d", c.Recorded.Collector, bytes(c.Recorded.Young), bytes(c.Recorded.Eden),
			bytes(c.Recorded.Survivor),
			bytes(c.Recorded.Old), c.Recorded.Tenuring))
	}
	ui.Field(w, "Recording", ui.Flowf("%s at depth %s; the program allocated %s", ui.Flow(ui.Seconds(r.Seconds)),
		r.Depth, bytes(r.Allocated)))
	t := ui.NewColumns(2, "", ">MEASURED", ">PREDICTED", ">INTERVAL", ">OFF")
	for _, row := range c.Rows {
		show := count
		switch row.What {
		case RowSeconds, RowLongest:
			show = ui.Seconds
		case RowCopied, RowPromoted:
			show = func(x float64) string { return ui.Bytes(uint64(x)) }
		}
		off := ui.Sprintf("%+.0f %%", 100*row.Off)
		if row.Off == 0 {
			off = "-"
		}
		t.Row(row.What, show(row.Measured), show(row.Predicted.Value), interval(row.Predicted, show), off)
	}
	t.Write(w)
	p := &r.Pauses
	ui.Field(w, "Pauses", ui.Flowf("a young collection takes %s, and %s a MiB that it copies (learnt from %d; 90 %% "+
		"are "+
		"within %s to +%s of that)", ui.Flow(ui.Seconds(p.Fixed)), ui.Flow(ui.Seconds(p.perMiB())), p.Young,
		ui.Flow(ui.Seconds(p.Low)), ui.Flow(ui.Seconds(p.High))))
	full := ui.Flowf("a full collection takes %s, and %s a MiB that it keeps (learnt from %d)",
		ui.Flow(ui.Seconds(p.FullFixed)), ui.Flow(ui.Seconds(p.FullPerByte*(1<<20))), p.Full)
	if p.Full == 0 {
		full = ui.Flowf("%s: a guess, because no full collection was recorded", full)
	}
	ui.Field(w, "", full)
	if r.Mode != ModeObserved {
		ui.Field(w, "Mode", ui.Flowf("%s, %d seeds: the predictions know less than the recording does, and the "+
			"intervals cover only what differs between seeds",
			ui.Flow(r.Mode), r.Seeds))
	}
	for _, warning := range r.Warnings {
		ui.Field(w, "Warning", ui.Flowf("%s.", ui.Flow(ui.Prose(warning))))
	}
	if len(r.Configurations) > 0 {
		r.table(w)
	}
	if a := r.Advice; a != nil {
		ui.Section(w, "Advice")
		ui.Paragraph(w, "", 0, ui.Flowf("A heap of %s halves the time in collections: from %s to %s (at most %s).",
			bytes(a.Heap), seconds(a.Before), seconds(a.After.Value), seconds(a.After.High)))
		ui.Fprintf(w, "\n  %s\n", ui.Text(a.Flags))
	}
	r.oneGeneration(w)
	if r.Goal != nil {
		r.Goal.writeText(w)
	}
}

// headline says whether the model fits, which figures it misses, and what may be the cause.
func (c *Check) headline(w io.Writer) {
	var missed []string
	for _, row := range c.Rows {
		if math.Abs(row.Off) > tolerance {
			missed = append(missed, fmt.Sprintf("%s (%+.0f %%)", row.What, 100*row.Off))
		}
	}
	label := ui.Flow("Cause")
	switch {
	case !c.Fits:
		ui.Headline(w, ui.Doubt, "The model does not fit this program: its prediction of the recorded collections is "+
			"off by more than 15 %. Do not rely on the predictions below.")
	case len(missed) > 0:
		ui.Headline(w, ui.Bold, ui.Flowf("The model fits this program in part: it predicts how many collections were "+
			"recorded, and their time, within 15 %%. It misses %s: do not rely on these figures below.",
			ui.Flow(strings.Join(missed, ", "))))
	default:
		ui.Headline(w, ui.Bold, "The model fits this program: it predicts the recorded collections within 15 %.")
		label = "Doubt" // nothing is off that it could be the cause of
	}
	for _, why := range c.Reasons {
		ui.Field(w, label, ui.Flowf("%s.", ui.Flow(ui.Prose(why))))
	}
}

// perMiB is what copying a MiB takes, with objects of the usual 40 bytes.
func (p *PauseReport) perMiB() float64 { return p.PerByte*(1<<20) + p.PerObject*(1<<20)/40 }

func bytes(n uint64) ui.Flow { return ui.Flow(ui.Bytes(n)) }

func count(x float64) string { return string(ui.Sprintf("%.0f", x)) }

func interval(s Span, show func(float64) string) ui.Text {
	low, high := show(s.Low), show(s.High)
	if low == high {
		return ui.Text(low)
	}
	return ui.Sprintf("%s to %s", ui.Text(low), ui.Text(high))
}

// table prints the configurations.
func (r *Report) table(w io.Writer) {
	ui.Section(w, "Other configurations")
	t := ui.NewColumns(0, "", ">YOUNG", ">OLD", ">YOUNG GCS", ">FULL GCS", ">GCS/MIN", ">TIME IN GC", ">LONGEST",
		">PROMOTED", ">OLD FREE")
	for i := range r.Configurations {
		p := &r.Configurations[i]
		mark := ""
		if p.Pareto {
			mark = "*"
		}
		if p.TooSmall {
			t.Row("", ui.Bytes(p.Young), ui.Bytes(p.Old), "too small", "", "", "", "", "", "")
			continue
		}
		minor, full := count(p.Minor.Value), count(p.Full.Value)
		t.Row(mark, ui.Bytes(p.Young), ui.Bytes(p.Old), minor, full, ui.Sprintf("%.1f", p.PerMinute.Value),
			ui.Share(p.GCShare.Value), ui.Seconds(p.Longest.Value), ui.Bytes(uint64(p.Promoted.Value)),
			ui.Share(p.Headroom.Value))
		t.Under(4, ui.Sprintf("from %s to %s young, %s to %s full; %s to %s of the time", count(p.Minor.Low),
			count(p.Minor.High), count(p.Full.Low), count(p.Full.High), ui.Share(p.GCShare.Low),
			ui.Share(p.GCShare.High)))
	}
	t.Write(w)
	ui.Paragraph(w, "", 0, "* no other one of these has both a smaller heap and less time in collections. OLD FREE: "+
		"the "+
		"share of old space that the live objects leave free when there are most of them.")
}

// oneGeneration prints what the equations give, if there is something to compare them with.
func (r *Report) oneGeneration(w io.Writer) {
	for i := range r.OneGeneration {
		o := &r.OneGeneration[i]
		if o.Measured == 0 {
			continue
		}
		ui.Section(w, "One generation")
		ui.Paragraph(w, "", 0, ui.Flowf("%d full collections followed another full one. Between the two, the program "+
			"allocated %s on average. The equations for a heap of %s without generations give %s by lifetimes, and %s "+
			"by mean size and mean lifetime.", o.Count, bytes(uint64(o.Measured)), bytes(o.Heap),
			bytes(uint64(o.ByLifetimes)), bytes(uint64(o.ByMeans))))
	}
}
