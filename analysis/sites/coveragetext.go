package sites

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/internal/ui"
)

// coverageBar is how many characters the bar of a collection has.
const coverageBar = 14

// WriteText prints the newest figure, what a reader of one file alone would know (Figure 18), and a line for most of
// the collections, evenly chosen; 0: for all.
func (q *CoverageReport) WriteText(w io.Writer, most int) {
	q.writeHeadline(w)
	ui.Section(w, "How reliable the figures are")
	ui.Field(w, "Sampling", q.resolution())
	gone := collection.Gone{Epochs: q.LostEpochs, Samples: q.LostSamples, States: q.UnknownGCs, Damaged: q.damaged}
	ui.Field(w, "Missing", gone.Text())
	collection.WriteMissed(w, "  No events", 16, q.Missed)
	if q.NotedChecked > 0 {
		ui.Field(w, "Noted sites", ui.Flowf("%s samples compared, %s of them have another stack",
			ui.Flow(ui.Count(q.NotedChecked)), ui.Flow(ui.Count(q.NotedWrong))))
	}
	q.writeAlone(w)
	if len(q.Collections) > 0 {
		ui.Section(w, "Share of the live bytes by what is known of their allocation site, after each collection")
		q.writeRows(w, most)
		exact := ui.Flow("█ the object was sampled")
		if q.Noted {
			exact = "█ the object was sampled, or its innermost frame was noted at its allocation"
		}
		ui.Paragraph(w, "EXACT", 11, exact)
		ui.Paragraph(w, "PROVEN", 11, "▒ one bytecode alone can have made the object; its callers are not known")
		ui.Paragraph(w, "INFERRED", 11, "▓ likeliest site of the object's class, counted with its probability")
		ui.Paragraph(w, "FEW", 11, "▖ one of two to four bytecodes has made the object")
		ui.Paragraph(w, "UNKNOWN", 11, "░ no site")
		ui.Paragraph(w, "OLDER", 11, "· may be older than the recording: at most this share")
	}
}

// writeAlone prints what is known by who reads from a sync point on.
func (q *CoverageReport) writeAlone(w io.Writer) {
	if len(q.SyncPoints) == 0 {
		return
	}
	ui.Section(w, "Share of the live objects with a known site, if reading begins at a ring file")
	ui.Paragraph(w, "", 0, "A pull or an incident begins at the sync point of a ring file. +0 is that collection, +1 "+
		"to +9 are the next ones. The row \"from it\" is for a reader who begins there, the row \"whole\" for one who "+
		"has the whole recording. If the two differ, beginning there loses sites.")
	heads := []string{">SYNC AT", "READ"}
	for i := range after18 + 1 {
		heads = append(heads, fmt.Sprintf(">+%d", i))
	}
	t := ui.NewColumns(0, heads...)
	for _, s := range q.SyncPoints {
		alone, whole := []any{s.GC, "from it"}, []any{"", "whole"}
		for i, a := range s.Alone {
			alone, whole = append(alone, ui.Share(a)), append(whole, ui.Share(s.Whole[i]))
		}
		for len(alone) < len(heads) {
			alone, whole = append(alone, ""), append(whole, "")
		}
		t.Row(alone...)
		t.Row(whole...)
	}
	t.Write(w)
}

// newest gives the newest collection whose state is known, nil if there is none, and its live bytes.
func (q *CoverageReport) newest() (*CoverageRow, uint64) {
	for i := len(q.Collections) - 1; i >= 0; i-- {
		c := &q.Collections[i]
		if _, all := c.Quality.Live(); c.Known && all > 0 {
			return c, all
		}
	}
	return nil, 0
}

// writeHeadline says what is known at the end.
func (q *CoverageReport) writeHeadline(w io.Writer) {
	c, all := q.newest()
	if c == nil {
		ui.Headline(w, ui.Doubt, "No allocation site is known: the heap state is unknown after each collection.")
		return
	}
	x := &c.Quality
	known := float64(x.ExactBytes+x.ProvenBytes+x.InferredBytes) / float64(all)
	style, verdict := ui.Good, ui.Flow("Figures by allocation site are good")
	switch {
	case known < poorShare:
		style, verdict = ui.Doubt, "Figures by allocation site say little"
	case known < goodShare:
		style, verdict = ui.Bold, "Figures by allocation site are rough"
	}
	ui.Headline(w, style, ui.Flowf("%s: after collection %d the site is known %s", verdict, c.GC, x.Sentence()))
	switch {
	case known >= goodShare:
	case x.BeforeBytes > x.UnknownBytes:
		ui.Paragraph(w, "", 0, "Most of the rest may be older than the recording. Record from the start of the "+
			"JVM to know "+
			"more.")
	case q.Longer > 0:
		ui.Paragraph(w, "", 0, ui.Flowf("A sample of each allocation was too much for this JVM. An interval between 0 "+
			"and %s, such as `--sampling 16KiB`, may show more sites.", ui.Flow(ui.Bytes(q.Interval))))
	case q.Interval > 0:
		ui.Paragraph(w, "", 0, "A smaller --sampling shows more sites, and costs more.")
	}
}

// goodShare and poorShare are the shares of live bytes with a known site from which on figures are good, and below
// which they say little.
const (
	goodShare = 0.8
	poorShare = 0.4
)

func (q *CoverageReport) writeRows(w io.Writer, most int) {
	ui.Fprintf(w, "%10s  %-8s  %-7s  %8s  %8s  %8s  %8s  %8s  %8s\n", "COLLECTION", "TIME", "KIND", "EXACT", "PROVEN",
		"INFERRED", "FEW", "UNKNOWN", "OLDER")
	n := len(q.Collections)
	shown := n
	if most > 0 {
		shown = min(most, n)
	}
	for i := range shown {
		c := q.Collections[n-1]
		if i < shown-1 {
			c = q.Collections[i*n/shown]
		}
		mark := ui.Text("")
		if c.Synced {
			mark = "  sync point"
		}
		at := c.Time.Local().Format(time.TimeOnly)
		if !c.Known {
			ui.Fprintf(w, "%10d  %-8s  %-7s  heap state unknown%s\n", c.GC, at, c.Kind, mark)
			continue
		}
		x := c.Quality
		_, all := x.Live()
		share := func(n uint64) string { return ui.Part(n, max(all, 1)) }
		bar, upTo := "", uint64(0)
		for _, p := range [...]struct {
			r string
			n uint64
		}{{"█", x.ExactBytes}, {"▒", x.ProvenBytes}, {"▓", x.InferredBytes}, {"▖", x.FewBytes}, {"░", x.UnknownBytes},
			{"·", x.BeforeBytes}} {
			upTo += p.n
			if n := int(float64(upTo)/float64(max(all, 1))*coverageBar+0.5) - len([]rune(bar)); n > 0 {
				bar += strings.Repeat(p.r, n)
			}
		}
		ui.Fprintf(w, "%10d  %-8s  %-7s  %8s  %8s  %8s  %8s  %8s  %8s  %s%s\n", c.GC, at, c.Kind,
			share(x.ExactBytes), share(x.ProvenBytes), share(x.InferredBytes), share(x.FewBytes),
			share(x.UnknownBytes), share(x.BeforeBytes), bar, mark)
	}
	if shown < n {
		ui.Fprintf(w, "%d more collections in between; --top 0 shows all\n", n-shown)
	}
}

// resolution says what the sampling interval can show, and of which objects.
func (q *CoverageReport) resolution() ui.Flow {
	if q.Interval == 0 {
		if q.LostSamples > 0 {
			return "each allocation was to be sampled, but samples were lost: the sites of those objects are not known"
		}
		return "each allocation is sampled"
	}
	of := ui.Flow("A site")
	if q.Noted {
		of = "Exact objects are counted, however small their site is. Of all others, a site"
	}
	given := q.GivenUp(q.LostSamples)
	if given != "" {
		given = " (" + given + ")"
	}
	return ui.Flowf("one sample in %s%s. %s with less than %s of live bytes may be missing. Sizes of sites below "+
		"%s are rough: the error may be above 20 %%.", ui.Flow(ui.Bytes(q.Interval)), given, of,
		ui.Flow(ui.Bytes(q.SeenBytes)), ui.Flow(ui.Bytes(q.KnownBytes)))
}
