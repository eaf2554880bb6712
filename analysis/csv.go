package analysis

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/heapcam/heapcam/classify"
)

// WriteCSV writes a row for each node of the tree, parents first.
func (g *Grouping) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"depth", "path", "key", "objects", "bytes", "estimated", "samples", "objects_low", "objects_high", "bytes_low", "bytes_high"})
	u := func(v uint64) string { return strconv.FormatUint(v, 10) }
	or := func(p *uint64, v uint64) string {
		if p != nil {
			v = *p
		}
		return u(v)
	}
	g.Tree.Walk(func(path []string, n *classify.Node) bool {
		out.Write([]string{strconv.Itoa(len(path)), strings.Join(path, " / "), n.Key, u(n.Objects), u(n.Bytes), strconv.FormatBool(n.Estimated), u(n.Samples),
			or(n.ObjLow, n.Objects), or(n.ObjHigh, n.Objects), or(n.BytesLow, n.Bytes), or(n.BytesHigh, n.Bytes)})
		return true
	})
	out.Flush()
	return out.Error()
}

// WriteCSV writes a row for each group, parents first.
func (d *DiffReport) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"depth", "path", "exact"}
	for _, f := range []string{"objects", "bytes"} {
		for _, k := range []string{"died", "permanent", "born"} {
			head = append(head, f+"_"+k, f+"_"+k+"_low", f+"_"+k+"_high")
		}
		head = append(head, f+"_before", f+"_after")
	}
	out.Write(head)
	var walk func(path []string, c *Change)
	walk = func(path []string, c *Change) {
		row := []string{strconv.Itoa(len(path)), strings.Join(path, " / "), strconv.FormatBool(c.Exact)}
		for _, x := range []Changes{c.Objects, c.Bytes} {
			for _, r := range []Range{x.Died, x.Permanent, x.Born} {
				for _, v := range []uint64{r.Value, r.Low, r.High} {
					row = append(row, strconv.FormatUint(v, 10))
				}
			}
			row = append(row, strconv.FormatUint(x.Before.Value, 10), strconv.FormatUint(x.After.Value, 10))
		}
		out.Write(row)
		for _, x := range c.Children {
			walk(append(path[:len(path):len(path)], x.Key), x)
		}
	}
	walk(nil, d.Tree)
	out.Flush()
	return out.Error()
}
