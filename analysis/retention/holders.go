package retention

import (
	"fmt"
	"io"

	"github.com/heapcam/heapcam/analysis/graph"
	"github.com/heapcam/heapcam/internal/ui"
)

// HoldersReport is the document of `heapcam holders`. Shares are parts of the bytes that were asked about.
type HoldersReport struct {
	Head
	// Which objects were asked about.
	Asked string `json:"asked"`
	// How many objects these are.
	Matched int `json:"matched"`
	// Who holds them, the largest share first.
	Holders []Holder `json:"holders"`
	// Share of what is held in ways that are too rare to list.
	RestShare float64 `json:"rest_share"`
	// Share of what weak and phantom references alone lead to.
	WeakShare float64 `json:"weak_share"`
	// Share of what no root reaches.
	DeadShare float64 `json:"unreached_share"`

	held *graph.Held
}

// Holder holds a part of the objects: all paths to that part lead through it.
type Holder struct {
	// Share of the bytes that were asked about.
	Share float64 `json:"share"`
	// Number of objects in this share.
	Objects int `json:"objects"`
	// Class of the holder; absent if many roots or classes hold alike.
	Class string `json:"class,omitempty"`
	// Address of the holder.
	Address string `json:"address,omitempty"`
	// Bytes that the holder retains.
	Retained uint64 `json:"retained,omitempty"`
	// strong, soft or final: the weakest reference on the way.
	Strength string `json:"strength"`
	// The path to the holder.
	Path *Path `json:"path,omitempty"`
	// The ways from the holder to the objects, the commonest first.
	Below []Way `json:"below"`
	// The holder as the verb prints it.
	Text string `json:"text"`
}

// Way is a way that leads to a share of what a holder holds.
type Way struct {
	// Share of what the holder holds; without a holder, of what was asked about.
	Share float64 `json:"share"`
	Path
}

// Holders finds who holds a set of objects; asked says which, for people.
func (h *Heap) Holders(set []graph.Member, asked string) *HoldersReport {
	held := h.Graph.Holders(set)
	r := &HoldersReport{Head: h.head("holders"), Asked: asked, Matched: len(set), RestShare: held.Rest,
		WeakShare: held.Weak, DeadShare: held.Unreached, Holders: []Holder{}, held: held}
	for i := range held.Holders {
		r.Holders = append(r.Holders, h.Holder(&held.Holders[i]))
	}
	return r
}

// Holder makes a document of a holder.
func (h *Heap) Holder(x *graph.Holder) Holder {
	out := Holder{Share: x.Share, Objects: x.Objects, Class: x.Class, Retained: x.Retained,
		Strength: x.Strength.String(), Below: []Way{}, Text: string(x.Text())}
	if x.Object != graph.None {
		p := h.path(&x.Path)
		out.Path, out.Address = &p, h.address(x.Object)
	}
	for i := range x.Below {
		out.Below = append(out.Below, Way{x.Below[i].Share, h.path(&x.Below[i].Path)})
	}
	return out
}

// WriteText prints the report.
func (r *HoldersReport) WriteText(w io.Writer) {
	ui.Fprintf(w, "Who holds %s: %s in the references after collection %d, %s\n\n", r.Asked,
		ui.Plural(uint64(r.Matched), "object"), r.GC, ui.Time(r.Time))
	for _, l := range r.held.Lines() {
		ui.Beside(w, ui.Sprintf("%7s  ", ui.Share(l.Share)), l.Text)
	}
	for i := range r.held.Holders {
		x := &r.held.Holders[i]
		if len(x.Below) < 2 {
			continue
		}
		ui.Section(w, ui.Flowf("All ways from the holder %s to what it holds", x.Class))
		for k := range x.Below {
			way := x.Below[k].Path.Text()
			if way == "" {
				way = "(the holder itself)"
			}
			ui.Beside(w, ui.Sprintf("%7s  ", ui.Share(x.Below[k].Share)), way)
		}
	}
	r.writeMissing(w)
}

// writeMissing prints what the listing left out.
func (h *Head) writeMissing(w io.Writer) {
	if len(h.Missing) > 0 {
		ui.Section(w, "Not in this listing")
		for _, m := range h.Missing {
			ui.Fprintf(w, "  %s\n", m)
		}
	}
}

// WriteDOT prints the report as a graph for Graphviz.
func (r *HoldersReport) WriteDOT(w io.Writer) {
	ui.Fprintf(w, "digraph holders {\n  rankdir=LR;\n  node [shape=box, fontname=sans];\n")
	ui.Fprintf(w, "  asked [label=%s, style=bold];\n", dot(ui.Sprintf("%s", r.Asked)))
	for i := range r.held.Holders {
		x := &r.held.Holders[i]
		before := ""
		node := func(name string, t ui.Text) {
			ui.Fprintf(w, "  %s [label=%s];\n", name, dot(t))
			if before != "" {
				ui.Fprintf(w, "  %s -> %s;\n", before, name)
			}
			before = name
		}
		if x.Object != graph.None {
			node(fmt.Sprintf("path%d", i), x.Path.Text())
			node(fmt.Sprintf("holder%d", i), ui.Sprintf("%s, retains %s", x.Class, ui.Bytes(x.Retained)))
		}
		holder := before
		for k := range x.Below {
			before = holder
			if t := x.Below[k].Path.Text(); t != "" {
				node(fmt.Sprintf("way%d_%d", i, k), t)
			}
			ui.Fprintf(w, "  %s -> asked [label=%s];\n", before, dot(ui.Text(ui.Share(x.Share*x.Below[k].Share))))
		}
	}
	ui.Fprintf(w, "}\n")
}

// dot quotes a label.
func dot(t ui.Text) ui.Text {
	var b []rune
	for _, r := range t {
		if r == '"' || r == '\\' {
			b = append(b, '\\')
		}
		b = append(b, r)
	}
	return ui.Text("\"" + string(b) + "\"")
}
