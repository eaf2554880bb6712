package drag

import (
	"cmp"
	"io"
	"slices"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Report is what `heapcam drag` shows.
type Report struct {
	Schema  string  `json:"schema"`
	By      string  `json:"by"`            // what the rows are: class or site
	Seconds float64 `json:"seconds"`       // from the first collection to the last
	Samples int     `json:"samples"`       // that were followed, and allocated by the code whose uses are seen
	All     Row     `json:"all"`           // all rows together
	Rows    []Row   `json:"rows"`          // the most drag first
	Left    int     `json:"rows_left_out"` // by --top
	// bytes that were allocated, estimated from all samples
	Allocated uint64 `json:"allocated_bytes"`
	// bytes of objects that died before a collection could see them: they have no drag here
	Unseen uint64 `json:"unseen_bytes"`
	// bytes of objects that were allocated by code whose uses are not seen, such as the JDK's: they have no row
	Outside uint64 `json:"outside_bytes"`
	// bytes of objects that survived and could not be followed
	Unfollowed uint64 `json:"unfollowed_bytes"`
	// samples that were locked at a collection: uses before it may be missing, so they count as used there
	Locked int `json:"locked_samples"`
}

// Figure is an estimate with its 95 % interval. The interval includes that deaths and last uses are known between two
// collections.
type Figure struct {
	Value float64 `json:"value"` // the estimate
	Low   float64 `json:"low"`   // of the interval
	High  float64 `json:"high"`  // of the interval
}

// Row is the drag of the objects of a class or site.
type Row struct {
	Name    string             `json:"name"`
	Site    []sites.StackFrame `json:"site,omitempty"`
	Samples int                `json:"samples"` // that died; 0: nothing is known of the drag yet
	Bytes   uint64             `json:"bytes"`   // of the objects that died, estimated
	// size × seconds between last use and death
	Drag Figure `json:"drag_byte_seconds"`
	// size × bytes that the program allocated between last use and death
	Allocation Figure `json:"drag_bytes_squared"`
	// mean seconds between last use and death, by bytes
	Mean float64 `json:"mean_seconds"`
	// mean of the bytes that the program allocated between last use and death
	MeanAllocated uint64 `json:"mean_allocated_bytes"`
	// share of the lifetimes (size × seconds) that is drag
	Share float64 `json:"share"`
	// bytes that the heap would hold less on average if each object died at its last use
	Saved uint64 `json:"saved_bytes"`
	// bytes of the objects that no collection has found dead, estimated: no other figure counts them
	Alive uint64 `json:"alive_bytes"`
	// mean seconds since the last use of those
	AliveMean float64 `json:"alive_mean_seconds"`
}

type tally struct {
	typ, frame           uint64
	samples              int
	bytes, lived         float64
	seconds, allocated   total
	alive, aliveByteTime float64
}

func (t *tally) add(f *dragOf) {
	size, weight := float64(f.sample.Size), f.sample.Weight
	if !f.dead {
		t.alive += size * weight
		t.aliveByteTime += size * weight * f.seconds.mid
		return
	}
	t.samples++
	t.bytes += size * weight
	t.lived += size * weight * f.lived
	t.seconds.add(f.seconds, size, weight)
	t.allocated.add(f.bytes, size, weight)
}

func (t *tally) row(name string, seconds float64) Row {
	x := Row{Name: name, Samples: t.samples, Bytes: uint64(t.bytes), Alive: uint64(t.alive)}
	if t.samples > 0 {
		x.Drag, x.Allocation = t.seconds.figure(), t.allocated.figure()
		x.Mean, x.MeanAllocated = x.Drag.Value/t.bytes, uint64(x.Allocation.Value/t.bytes)
	}
	if t.lived > 0 {
		x.Share = min(1, x.Drag.Value/t.lived)
	}
	if seconds > 0 {
		x.Saved = uint64(x.Drag.Value / seconds)
	}
	if t.alive > 0 {
		x.AliveMean = t.aliveByteTime / t.alive
	}
	return x
}

// Make describes the drag by class or site; of the rows, the top ones (0: all).
func (t *Lives) Make(by string, top int) *Report {
	out := &Report{Schema: "heapcam.drag/1", By: by, Seconds: float64(t.end-t.begin) / 1e9, Rows: []Row{},
		Allocated: uint64(t.sampled), Unfollowed: uint64(t.unfollowed), Locked: t.blind}
	type key struct{ typ, frame uint64 }
	all, groups, inside, outside := tally{}, map[key]*tally{}, map[uint64]bool{}, 0.0
	unseen := t.sampled - t.unfollowed
	for i := range t.drags {
		f := &t.drags[i]
		unseen -= f.sample.Weight * float64(f.sample.Size)
		in, known := inside[f.sample.Frame]
		if !known {
			in = t.inside(f.sample.Frame)
			inside[f.sample.Frame] = in
		}
		if !in {
			outside += f.sample.Weight * float64(f.sample.Size)
			continue
		}
		k := key{typ: f.sample.Type}
		if by == "site" {
			k.frame = f.sample.Frame
		}
		if groups[k] == nil {
			groups[k] = &tally{typ: k.typ, frame: k.frame}
		}
		groups[k].add(f)
		all.add(f)
		out.Samples++
	}
	out.Outside, out.Unseen = uint64(outside), uint64(max(0, unseen))
	out.All = all.row("all objects", out.Seconds)
	out.rows(t.symbols, sorted(groups), top)
	return out
}

func sorted[K comparable](groups map[K]*tally) []*tally {
	order := make([]*tally, 0, len(groups))
	for _, g := range groups {
		order = append(order, g)
	}
	slices.SortFunc(order, func(a, b *tally) int {
		return cmp.Or(cmp.Compare(b.seconds.mid.Sum, a.seconds.mid.Sum), cmp.Compare(b.alive, a.alive),
			cmp.Compare(a.typ, b.typ), cmp.Compare(a.frame, b.frame))
	})
	return order
}

func (r *Report) rows(symbols *heap.Symbols, order []*tally, top int) {
	if top > 0 && len(order) > top {
		r.Left, order = len(order)-top, order[:top]
	}
	for _, g := range order {
		x := g.row(symbols.TypeName(uint32(g.typ)), r.Seconds)
		if r.By == "site" {
			x.Site = sites.Stack(symbols, g.frame, sites.MaxFrames)
		}
		r.Rows = append(r.Rows, x)
	}
}

const mib = 1 << 20

// cells gives what a row says of the objects that died. Without one, that is nothing, and not zero.
func (x *Row) cells() []any {
	if x.Samples == 0 {
		return slices.Repeat([]any{ui.Text("–")}, 6)
	}
	return []any{ui.Sprintf("%.1f", x.Drag.Value/mib), ui.Sprintf("%.1f–%.1f", x.Drag.Low/mib, x.Drag.High/mib),
		ui.Bytes(x.Saved), ui.Text(ui.Share(x.Share)), ui.Text(ui.Seconds(x.Mean)), ui.Bytes(x.MeanAllocated)}
}

// WriteText prints the report.
func (r *Report) WriteText(w io.Writer) {
	ui.Fprintf(w, "Drag: time between an object's last use and its death, in %s\n\n", ui.Seconds(r.Seconds))
	last := "CLASS"
	if r.By == "site" {
		last = "CLASS AND ALLOCATION SITE"
	}
	t := ui.NewColumns(0, ">MIB·S", ">95 % INTERVAL", ">SAVES", ">OF LIFE", ">MEAN", ">ALLOCATED", ">UNUSED NOW", last)
	open := false
	add := func(x *Row) {
		cells := x.cells()
		open = open || x.Samples == 0
		t.Row(append(cells, ui.Sprintf("%s %s", ui.Bytes(x.Alive), ui.Seconds(x.AliveMean)), x.Name)...)
		if len(x.Site) > 0 {
			t.Under(7, ui.Sprintf("%s", sites.Top(x.Site)))
		}
	}
	add(&r.All)
	for i := range r.Rows {
		add(&r.Rows[i])
	}
	t.Write(w)
	if r.Left > 0 {
		ui.Fprintf(w, "%d more rows; --top 0 shows all\n", r.Left)
	}
	ui.Fprintf(w, "\nnot in the table, of %s allocated: %s died before a collection, %s survived and were allocated "+
		"by other code, %s could not be followed\n", ui.Bytes(r.Allocated), ui.Bytes(r.Unseen), ui.Bytes(r.Outside),
		ui.Bytes(r.Unfollowed))
	if r.Locked > 0 {
		ui.Fprintf(w, "%d samples were locked at a collection, and count as used there\n", r.Locked)
	}
	ui.Fprintf(w, "\n")
	if open {
		ui.Paragraph(w, "", 0, "–: no collection has found one of these objects dead, so their drag is not known yet.")
	}
	ui.Paragraph(w, "", 0, "SAVES: bytes that the heap would hold less on average if each object died at its last "+
		"use. OF LIFE: share of the objects' lifetimes. MEAN: time between last use and death, by bytes. ALLOCATED: "+
		"what the program allocated in that time. UNUSED NOW: objects that no collection has found dead, and "+
		"how long they have not been used. The other columns do not count them. Uses by the JDK's own code are not "+
		"seen, so objects that only the JDK uses seem to be unused.")
}
