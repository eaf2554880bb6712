package history

import (
	"fmt"
	"io"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// curveWidth is how many characters the curve of a history has.
const curveWidth = 12

// WriteText prints the first most classes and sites, a line each.
func (out *HeapHistory) WriteText(w io.Writer, most int) {
	what := ui.Plural(uint64(len(out.Collections)), "collection")
	if out.SyncPoints {
		what = ui.Plural(uint64(len(out.Collections)), "collection with a sync point")
		if n := len(out.Collections); n != 1 {
			what = fmt.Sprintf("%d collections with sync points", n)
		}
	}
	ui.Fprintf(w, "Live objects over %s\n", ui.Text(what))
	out.table(w, "Classes (exact; BORN and DIED: objects)", "CLASS", out.Classes, most)
	out.table(w, "Allocation sites (estimated from samples; BORN and DIED: samples)", "CLASS AND ALLOCATION SITE",
		out.Sites, most)
	ui.Fprintf(w, "\n")
	if out.SyncPoints {
		ui.Paragraph(w, "", 0, "BYTES: at the end. Only the 1,024 largest classes and sites of each sync point are "+
			"known.")
		return
	}
	ui.Paragraph(w, "", 0, ui.Flowf("BYTES: at the end. MEAN AGE: collections, of what lives at the end. SURVIVED "+
		"%d: bytes "+
		"at the end that have survived %d collections or more.", out.Survived, out.Survived))
}

func (out *HeapHistory) table(w io.Writer, heading ui.Flow, last string, all []History, most int) {
	ui.Section(w, heading)
	heads := []string{"OVER TIME", ">BYTES", ">BORN", ">DIED"}
	if !out.SyncPoints {
		heads = append(heads, ">MEAN AGE", fmt.Sprintf(">SURVIVED %d", out.Survived))
	}
	t := ui.NewColumns(0, append(heads, last)...)
	for i, x := range all {
		if most > 0 && i == most {
			break
		}
		row := []any{ui.Text(ui.Spark(out.curve(&x), curveWidth)), ui.Bytes(x.Bytes[len(x.Bytes)-1])}
		switch {
		case !out.SyncPoints:
			row = append(row, x.Born, x.Died, ui.Sprintf("%.1f", x.MeanAge), ui.Bytes(x.OldBytes))
		case x.Site != nil: // summaries do not have them
			row = append(row, "-", "-")
		default:
			row = append(row, x.Born, x.Died)
		}
		t.Row(append(row, sites.WithLoader(x.Class, x.Loader))...)
		if len(x.Site) > 0 {
			t.Under(6, ui.Sprintf("%s", sites.Top(x.Site)))
		}
	}
	t.Write(w)
	if n := len(all) - most; most > 0 && n > 0 {
		ui.Fprintf(w, "%d more; --top 0 shows all\n", n)
	}
}

// curve is x's bytes after each collection.
func (out *HeapHistory) curve(x *History) []float64 {
	v := make([]float64, len(out.Collections))
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
