package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/heapcam/heapcam/agent/definitions"
	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/trace"
)

// maxSummary bounds the text of a summary, bytes.
const maxSummary = 4000

// summaryTypes is how many classes stand in the place of a listing that was left out.
const summaryTypes = 20

// largestOf says in a line what a listing holds: the n largest classes, and the sites with the most bytes of live
// samples. live has taken the listing in, and so has counted its classes if it could read it.
func largestOf(y *trace.Sync, live *live, d *definitions.Tables, n int) string {
	type sum struct {
		id             uint64
		objects, bytes uint64
	}
	largest := func(m map[uint64]*sum) []*sum {
		all := make([]*sum, 0, len(m))
		for _, s := range m {
			all = append(all, s)
		}
		slices.SortFunc(all, func(a, b *sum) int {
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.id, b.id))
		})
		return all[:min(n, len(all))]
	}
	add := func(m map[uint64]*sum, id, bytes uint64) {
		s := m[id]
		if s == nil {
			s = &sum{id: id}
			m[id] = s
		}
		s.objects++
		s.bytes += bytes
	}
	classes, sites := map[uint64]*sum{}, map[uint64]*sum{}
	live.est.Totals(func(typ uint32, n coverage.Count) { classes[uint64(typ)] = &sum{uint64(typ), n.Objects, n.Bytes} })
	for i := range y.Samples {
		add(sites, y.Samples[i].Frame, y.Samples[i].Size)
	}
	var b strings.Builder
	b.WriteString("largest classes:")
	for _, c := range largest(classes) {
		t, _ := d.Type(c.id)
		fmt.Fprintf(&b, " %s %d objects %d bytes;", t.Name, c.objects, c.bytes)
	}
	b.WriteString(" sites with most sampled bytes:")
	for _, s := range largest(sites) {
		f, _ := d.Frame(s.id)
		m, _ := d.Method(f.Method)
		fmt.Fprintf(&b, " %s.%s %d samples %d bytes;", strings.TrimSuffix(strings.TrimPrefix(m.Class, "L"), ";"),
			m.Name, s.objects, s.bytes)
	}
	text := b.String()
	if len(text) > maxSummary {
		text = strings.ToValidUTF8(text[:maxSummary], "")
	}
	return strings.TrimSuffix(text, ";")
}
