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

// WriteText prints the newest figure, a line for each collection, and what a reader of one file alone would know
// (Figure 18).
func (q *CoverageReport) WriteText(w io.Writer) {
	q.writeHeadline(w)
	if len(q.Collections) > 0 {
		ui.Section(w, "Share of the live bytes by what is known of their allocation site, after each collection")
		q.writeRows(w)
		ui.Paragraph(w, "EXACT", 11, "█ the object was sampled")
		ui.Paragraph(w, "INFERRED", 11, "▓ likeliest site of the object's type, counted with its probability")
		ui.Paragraph(w, "UNKNOWN", 11, "░ no site")
		ui.Paragraph(w, "OLDER", 11, "· may be older than the recording: at most this share")
	}
	ui.Section(w, "What the figures rest on")
	ui.Field(w, "Sampling", q.resolution())
	ui.Field(w, "Missing", ui.Flowf("%s, %s", ui.Flow(ui.Plural(q.LostEpochs, "collection")),
		ui.Flow(ui.Plural(q.LostSamples, "sample"))))
	collection.WriteMissed(w, "  No events", 16, q.Missed)
	if len(q.SyncPoints) == 0 {
		return
	}
	ui.Section(w, "Share of the live objects with a known site, if reading starts at a sync point")
	ui.Paragraph(w, "", 0, "At the sync point, and up to nine collections later; below it, read from the recording's "+
		"beginning.")
	heads := []string{">COLLECTION", "FROM"}
	for i := range after18 + 1 {
		heads = append(heads, fmt.Sprintf(">+%d", i))
	}
	t := ui.NewColumns(0, heads...)
	for _, s := range q.SyncPoints {
		alone, whole := []any{s.GC, "it"}, []any{"", "start"}
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
	ui.Headline(w, ui.Bold, ui.Flowf("The allocation site is known for %s of the live bytes after collection %d: "+
		"%s exactly, %s inferred.", ui.Flow(ui.Part(x.ExactBytes+x.InferredBytes, all)), c.GC,
		ui.Flow(ui.Part(x.ExactBytes, all)), ui.Flow(ui.Part(x.InferredBytes, all))))
}

func (q *CoverageReport) writeRows(w io.Writer) {
	ui.Fprintf(w, "%10s  %-8s  %-7s  %8s  %8s  %8s  %8s\n", "COLLECTION", "TIME", "KIND", "EXACT", "INFERRED",
		"UNKNOWN", "OLDER")
	for _, c := range q.Collections {
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
		}{{"█", x.ExactBytes}, {"▓", x.InferredBytes}, {"░", x.UnknownBytes}, {"·", x.BeforeBytes}} {
			upTo += p.n
			if n := int(float64(upTo)/float64(max(all, 1))*coverageBar+0.5) - len([]rune(bar)); n > 0 {
				bar += strings.Repeat(p.r, n)
			}
		}
		ui.Fprintf(w, "%10d  %-8s  %-7s  %8s  %8s  %8s  %8s  %s%s\n", c.GC, at, c.Kind, share(x.ExactBytes),
			share(x.InferredBytes), share(x.UnknownBytes), share(x.BeforeBytes), bar, mark)
	}
}

// resolution says what the sampling interval can show.
func (q *CoverageReport) resolution() ui.Flow {
	if q.Interval == 0 {
		return "each allocation is sampled"
	}
	last := "0 %"
	if c, all := q.newest(); c != nil {
		last = ui.Part(c.Quality.ResolvedBytes, all)
	}
	return ui.Flowf("one sample in %s. A site is seen from %s of live bytes on (95 %% probability), and its size is "+
		"known to ±20 %% from %s on. For %s of the live bytes the share of the type's largest site is known to ±10 %%.",
		ui.Flow(ui.Bytes(q.Interval)), ui.Flow(ui.Bytes(q.SeenBytes)), ui.Flow(ui.Bytes(q.KnownBytes)), ui.Flow(last))
}
