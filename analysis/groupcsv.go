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
