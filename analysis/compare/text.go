package compare

import (
	"io"
	"math"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// rate shows a number of bytes that may be negative.
func rate(x float64) ui.Flow {
	sign := ""
	if x = math.Round(x); x < 0 {
		sign, x = "−", -x
	}
	return ui.Flow(sign + ui.Bytes(uint64(x)))
}

func (s Slope) text() ui.Flow {
	if s == (Slope{}) {
		return "no growth"
	}
	return ui.Flowf("%s/s (95 %%: %s/s to %s/s)", rate(s.Value), rate(s.Low), rate(s.High))
}

// goneBelow is the share of the growth before below which what is left of it counts as none.
const goneBelow = 0.01

// sentence says how the second recording differs.
func (d *Report) sentence() ui.Flow {
	b, a := d.Live.Before, d.Live.After
	if min(d.Before.Collections, d.After.Collections) < slopePoints {
		return ui.Flowf("Cannot compare: a recording with fewer than %d collections has no rate of growth.",
			slopePoints)
	}
	verdict := ui.Flow("The two growth rates cannot be told apart")
	switch {
	case a.High < b.Low && a.Low <= 0:
		verdict = "After the change the growth is gone"
		if b.Low <= 0 {
			verdict = "After the change the heap grows less"
		}
	case b.Low > 0 && a.High < goneBelow*b.Low: // a rate that is certain, but only of a few bytes
		verdict = "After the change the growth is gone but for a remainder of less than 1 %"
	case a.High < b.Low:
		verdict = "After the change the heap grows less"
	case a.Low > b.High:
		verdict = "After the change the heap grows more"
	}
	s := ui.Flowf("%s: live bytes grew by %s before and by %s after.", verdict, b.text(), a.text())
	if d.Live.BeforeShare.Value != 0 || d.Live.AfterShare.Value != 0 {
		s += ui.Flowf(" Of each MiB that the program allocated, %s stayed before, and %s "+
			"after.", rate(d.Live.BeforeShare.Value*(1<<20)),
			rate(d.Live.AfterShare.Value*(1<<20)))
	}
	if d.SitesShared == 0 && d.OnlyBefore+d.OnlyAfter > 0 {
		s += " The recordings share no allocation site: are they of the same program?"
	}
	if len(d.Sites) > 0 {
		x := d.Sites[0]
		s += ui.Flowf(" The largest difference is %s %s: %s before, %s after.", sites.ClassName(x.Class, ""),
			sites.Place(x.Site), x.Before.text(), x.After.text())
	}
	return s
}

// WriteText writes the report for people.
func (d *Report) WriteText(w io.Writer) {
	ui.Headline(w, ui.Bold, d.Sentence)
	ui.Section(w, "Recordings")
	for _, x := range []struct {
		name ui.Flow
		w    Window
	}{{"Before", d.Before}, {"After", d.After}} {
		ui.Field(w, x.name, ui.Flowf("%s in %s, about %s allocated",
			ui.Flow(ui.Plural(uint64(x.w.Collections), "collection")), ui.Flow(ui.Seconds(x.w.Seconds)),
			ui.Flow(ui.Bytes(uint64(x.w.Allocated)))))
	}
	ui.Field(w, "Sites", ui.Flowf("%d in both, %d only before, %d only after; matched by class and methods, so lines "+
		"may move", d.SitesShared, d.OnlyBefore, d.OnlyAfter))
	d.writeVerdicts(w)
	ui.Section(w, "Growth of what survives, by allocation site (estimated from samples)")
	t, drawn := ui.NewColumns(2, ">BEFORE", ">AFTER", "CLASS AND ALLOCATION SITE"), false
	for _, s := range d.Sites[:min(len(d.Sites), 10)] {
		class := ui.Sprintf("%s", s.Class)
		if s.Drawn {
			share := func(x float64) ui.Text {
				if x == 0 {
					return "–"
				}
				return ui.Text(ui.Share(x))
			}
			class += ui.Sprintf("  (callers drawn: %s, then %s)", share(s.ShareBefore), share(s.ShareAfter))
			drawn = true
		}
		t.Row(rate(s.Before.Value)+"/s", rate(s.After.Value)+"/s", class)
		for _, f := range s.Site[:min(len(s.Site), 3)] {
			t.Under(6, ui.Sprintf("at %s", f))
		}
	}
	t.Write(w)
	if drawn {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, "callers drawn: the innermost frame is exact; the callers are as in live samples that "+
			"end there, in this share before and after. --json has bounds.")
	}
	if !d.Swept {
		ui.Fprintf(w, "\n")
		ui.Paragraph(w, "", 0, "In at least one recording old space was not collected: part of the growth may "+
			"be garbage.")
	}
}
