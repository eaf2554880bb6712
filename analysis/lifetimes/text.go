package lifetimes

import (
	"io"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/internal/ui"
)

// sizeName names the sizes of a place of Tape.Size.
func sizeName(class int) string {
	return string(ui.Sprintf("%s to %s", ui.Bytes(uint64(word)<<class), ui.Bytes(uint64(word)<<(class+1)-word)))
}

// shown are the ages, in bytes, of which the table shows the share that lives longer.
var shown = []uint64{64 << 10, 1 << 20, 16 << 20, 256 << 20}

// WriteText prints the report.
func (r *Report) WriteText(w io.Writer) {
	ui.Fprintf(w, "Lifetimes in bytes that the program allocated while the object lived; shares of allocated bytes\n")
	ui.Fprintf(w, "%s allocated; depth %s\n", ui.Bytes(r.Allocated), ui.Text(r.Depth))
	if r.LeftOut > 0 {
		ui.Paragraph(w, "", 0, ui.Flowf("%s of them are left out: after they were allocated the heap state is "+
			"unknown, so nothing says how long they lived.", ui.Flow(ui.Bytes(r.LeftOut))))
	}
	ui.Fprintf(w, "\n")
	heads := []string{">ALLOCATED", ">MEDIAN", ">90 %"}
	for _, age := range shown {
		heads = append(heads, ">OVER "+ui.Bytes(age))
	}
	last := map[string]string{"size": "SIZE", "site": "CLASS AND ALLOCATION SITE"}[r.By]
	if last == "" {
		last = "CLASS"
	}
	t := ui.NewColumns(0, append(heads, "CURVE", last)...)
	names, stacks := make([]ui.Flow, len(r.Rows)), make([][]sites.StackFrame, len(r.Rows))
	for i, x := range r.Rows {
		names[i], stacks[i] = ui.Flowf("%s", x.Name), x.Site
	}
	places := sites.Places(names, stacks)
	mark := ""
	if r.Depth != "full" || r.By == "site" {
		mark = "~"
	}
	add := func(x *Row, place ui.Flow) {
		quantile := func(n *uint64) ui.Text {
			if n == nil {
				return "-"
			}
			return ui.Text(ui.Bytes(*n))
		}
		allocated := ui.Bytes(x.Bytes)
		if x != &r.All {
			allocated = mark + allocated
		}
		cells := []any{allocated, quantile(x.Median), quantile(x.P90)}
		for _, age := range shown {
			cell := ui.Text("")
			if share, ok := x.At(age); ok {
				cell = ui.Text(ui.Share(share))
			}
			cells = append(cells, cell)
		}
		alive := []float64{0}
		for _, p := range x.Curve {
			alive = append(alive, p.Alive)
		}
		t.Row(append(cells, ui.Text(ui.Spark(alive, 12)), x.Name)...)
		if len(x.Site) > 0 {
			t.Under(6, ui.Text(place))
		}
	}
	add(&r.All, "")
	for i := range r.Rows {
		add(&r.Rows[i], places[i])
	}
	t.Write(w)
	if r.Left > 0 {
		ui.Fprintf(w, "%d more rows; --top 0 shows all\n", r.Left)
	}
	ui.Fprintf(w, "\n")
	ui.Paragraph(w, "", 0, "MEDIAN, 90 %: half, or 90 %, of the bytes live shorter than this. OVER: share of the "+
		"bytes that live longer than this. CURVE: the same share at ages that double from bar to bar. -: the "+
		"recording is too short to say. A recording shows only between which collections an object died, so all "+
		"shares are estimates (Turnbull's method). ~: an estimate from samples; one of few samples may be far off.")
}
