package history

import (
	"fmt"
	"io"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// curveWidth is how many characters the curve of a history has.
const curveWidth = 12

// WriteText prints the first most classes and sites, a line each.
func (out *HeapHistory) WriteText(w io.Writer, most int) {
	n := len(out.Collections)
	what := ui.Plural(uint64(n), "collection")
	if out.SyncPoints {
		what = ui.Plural(uint64(n), "collection with a sync point")
		if n != 1 {
			what = fmt.Sprintf("%d collections with sync points", n)
		}
	}
	switch {
	case n == 0:
		ui.Headline(w, ui.Doubt, "There is no collection in this recording.")
		return
	case out.Last == 0:
		ui.Headline(w, ui.Doubt, ui.Flowf("The heap state is unknown after all of %s: there is no history. "+
			"Depth samples records none, and it is the only depth with ZGC, Shenandoah and Epsilon.", ui.Flow(what)))
		return
	}
	ui.Fprintf(w, "Live objects over %s, %s\n", ui.Text(what),
		ui.Seconds(out.Seconds[max(0, slices.Index(out.Collections, out.Last))]))
	ui.Paragraph(w, "", 0, ui.Flowf("BYTES is what is live after collection %d, where the curve ends, too.", out.Last))
	if last := out.Collections[n-1]; last != out.Last {
		ui.Paragraph(w, "", 0, ui.Flowf("The heap state is unknown from there to collection %d. Births and deaths "+
			"after it do not count.", last))
	}
	heading := ui.Flow("Classes (exact; births and deaths are objects)")
	if out.Uncounted > 0 {
		heading = "Classes (bytes are exact; births and deaths are objects, at least so many)"
	}
	out.table(w, heading, "CLASS", out.Classes, most)
	out.table(w, "Allocation sites (estimated from samples; births and deaths are samples)", "CLASS AND "+
		"ALLOCATION SITE",
		out.Sites, most)
	ui.Fprintf(w, "\n")
	if n := uint64(out.Uncounted); n > 0 {
		ui.Paragraph(w, "", 0, ui.Flowf("BORN, DIED, MEAN AGE and OLDER of classes are at least so much: at %s, such "+
			"as full ones, it is not recorded which objects were born and died. There BORN and DIED have only the "+
			"change in the number of objects.", ui.Flow(ui.Plural(n, "collection"))))
	}
	if out.SyncPoints {
		ui.Paragraph(w, "", 0, "Births and deaths at full collections are not in BORN and DIED of classes.")
		ui.Paragraph(w, "", 0, "Only the 1,024 largest classes and sites of each sync point are known. Figures "+
			"of sites "+
			"are scaled from samples, to at most what the class has.")
		return
	}
	ui.Paragraph(w, "", 0, ui.Flowf("MEAN AGE: in collections, of what is live at the end. OLDER: live bytes "+
		"that have survived %d collections or more (--survived). Figures of sites are scaled from samples, to at most "+
		"what the class has. The curve of a site changes when a sample of its class is born or dies.", out.Survived))
}

func (out *HeapHistory) table(w io.Writer, heading ui.Flow, last string, all []History, most int) {
	ui.Section(w, heading)
	heads := []string{"OVER TIME", ">BYTES", ">BORN", ">DIED"}
	if !out.SyncPoints {
		heads = append(heads, ">MEAN AGE", ">OLDER")
	}
	t := ui.NewColumns(0, append(heads, last)...)
	left := len(all)
	if most > 0 {
		all = all[:min(most, len(all))]
	}
	left -= len(all)
	classes, stacks := make([]ui.Flow, len(all)), make([][]sites.StackFrame, len(all))
	for i, x := range all {
		classes[i], stacks[i] = sites.ClassName(x.Class, x.Loader), x.Site
	}
	places := sites.Places(classes, stacks)
	for i, x := range all {
		row := []any{ui.Text(ui.Spark(out.curve(&x), curveWidth)), ui.Bytes(x.Bytes[len(x.Bytes)-1])}
		switch {
		case !out.SyncPoints:
			age, old := ui.Text("-"), "-"
			if out.Last == out.Collections[len(out.Collections)-1] {
				age, old = ui.Sprintf("%.1f", x.MeanAge), ui.Bytes(x.OldBytes)
			}
			row = append(row, x.Born, x.Died, age, old)
		case x.Site != nil: // summaries do not have them
			row = append(row, "-", "-")
		default:
			row = append(row, x.Born, x.Died)
		}
		t.Row(append(row, sites.WithLoader(x.Class, x.Loader))...)
		if len(x.Site) > 0 {
			t.Under(6, ui.Text(places[i]))
		}
	}
	t.Write(w)
	if left > 0 {
		ui.Fprintf(w, "%d more; --top 0 shows all\n", left)
	}
}

// curve is x's bytes after each collection.
func (out *HeapHistory) curve(x *History) []float64 {
	v := make([]float64, slices.Index(out.Collections, out.Last)+1)
	for i, k := 0, 0; i < len(v); i++ {
		if i > 0 {
			v[i] = v[i-1]
		}
		for ; k < len(x.At) && int(x.At[k]) == i; k++ {
			v[i] = float64(x.Bytes[k])
		}
	}
	return v
}
