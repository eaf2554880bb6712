package analysis

import (
	"io"
	"strings"

	"github.com/heapcam/heapcam/classify/grouping"
	"github.com/heapcam/heapcam/internal/ui"
)

// WriteCSV writes a row for each node of the tree, parents first.
func (g *Grouping) WriteCSV(w io.Writer) error {
	out := ui.NewCSV(w, "depth", "path", "key", "objects", "bytes", "estimated", "samples", "objects_low",
		"objects_high", "bytes_low", "bytes_high", "callers_drawn")
	or := func(p *uint64, v uint64) uint64 {
		if p != nil {
			v = *p
		}
		return v
	}
	g.Tree.Walk(func(path []string, n *grouping.Node) bool {
		out.Row(len(path), strings.Join(path, " / "), n.Key, n.Objects, n.Bytes, n.Estimated, n.Samples,
			or(n.ObjLow, n.Objects), or(n.ObjHigh, n.Objects), or(n.BytesLow, n.Bytes), or(n.BytesHigh, n.Bytes),
			n.Drawn)
		return true
	})
	return out.Flush()
}

// WriteCSV writes a row for each group, parents first.
func (d *DiffReport) WriteCSV(w io.Writer) error {
	head := []string{"depth", "path", "exact"}
	for _, f := range []string{"objects", "bytes"} {
		for _, k := range []string{"died", "permanent", "born"} {
			head = append(head, f+"_"+k, f+"_"+k+"_low", f+"_"+k+"_high")
		}
		head = append(head, f+"_before", f+"_after")
	}
	head = append(head, "callers_drawn")
	out := ui.NewCSV(w, head...)
	var walk func(path []string, c *Change)
	walk = func(path []string, c *Change) {
		row := []any{len(path), strings.Join(path, " / "), c.Exact}
		for _, x := range []Changes{c.Objects, c.Bytes} {
			for _, r := range []Range{x.Died, x.Permanent, x.Born} {
				row = append(row, r.Value, r.Low, r.High)
			}
			row = append(row, x.Before.Value, x.After.Value)
		}
		out.Row(append(row, c.Drawn)...)
		for _, x := range c.Children {
			walk(append(path[:len(path):len(path)], x.Key), x)
		}
	}
	walk(nil, d.Tree)
	return out.Flush()
}
