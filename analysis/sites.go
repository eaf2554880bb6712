package analysis

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
)

// SiteRow is what lives of one class from one allocation stack, or from none that is known: each class that is split has the children SiteUnknown
// and BeforeTape too (in Child, with no site), and its children add up to what the class has, which is exact. Of a site's objects some are exact
// (samples), the others inferred from samples of the same kind. Low and High are 95 % intervals; at interval 0 every object is a sample and the
// three are equal. What may be older than the recording (at most so much) belongs to no site.
type SiteRow struct {
	Class       string       `json:"class"`
	Loader      string       `json:"loader,omitempty"` // where two classes share a name
	Child       string       `json:"child,omitempty"`
	Site        []StackFrame `json:"site"`
	Samples     uint64       `json:"samples"` // exact objects
	Objects     uint64       `json:"objects"`
	ObjectsLow  uint64       `json:"objects_low"`
	ObjectsHigh uint64       `json:"objects_high"`
	ExactBytes  uint64       `json:"exact_bytes"`
	Bytes       uint64       `json:"bytes"`
	BytesLow    uint64       `json:"bytes_low"`
	BytesHigh   uint64       `json:"bytes_high"`
}

// siteKey is a site as samples name it.
type siteKey struct {
	frame uint64
	class Class
}

// tally sums samples with their weights: each stands for w = 1/p objects, p being the probability that it was drawn.
type tally struct {
	n       uint64
	objects stats.Total
	bytes   stats.Total
	sampled uint64 // bytes of the samples themselves
}

func (t *tally) add(s *heap.Sample) {
	t.n++
	t.objects.Add(1, s.Weight)
	t.bytes.Add(float64(s.Size), s.Weight)
	t.sampled += s.Size
}

// byID gives samples in the order in which they were taken: sums of their weights come out the same, to the last bit, each time.
func byID(samples iter.Seq[*heap.Sample]) iter.Seq[*heap.Sample] {
	return slices.Values(slices.SortedFunc(samples, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) }))
}

// siteTallies sums samples by site.
func siteTallies(r *heap.Replayer, samples iter.Seq[*heap.Sample]) map[siteKey]*tally {
	out := map[siteKey]*tally{}
	class := map[uint64]Class{}
	for s := range byID(samples) {
		c, ok := class[s.Type]
		if !ok {
			c = ClassOf(r, uint32(s.Type)).folded()
			class[s.Type] = c
		}
		k := siteKey{s.Frame, c}
		t := out[k]
		if t == nil {
			t = &tally{}
			out[k] = t
		}
		t.add(s)
	}
	return out
}

// Sites gives what lives by site in the state of r after collection gc: the sites with the most bytes first, then what has none.
func Sites(r *heap.Replayer, gc uint64) []SiteRow {
	return siteRows(r, siteTallies(r, maps.Values(r.Live)), byClass(r, r.State.PerType()), stratify(r, gc, nil).estimate())
}

// byClass adds up counts by type id.
func byClass(r *heap.Replayer, perType []heap.Count) map[Class]heap.Count {
	have := map[Class]heap.Count{}
	for id, n := range perType {
		if n.Objects > 0 {
			c := ClassOf(r, uint32(id)).folded()
			h := have[c]
			have[c] = heap.Count{Objects: h.Objects + n.Objects, Bytes: h.Bytes + n.Bytes}
		}
	}
	return have
}

// siteRows renders tallies; have is the exact count of each class, which bounds the estimates and is what the children of a class add up to.
// Without an estimate sites have what their samples stand for.
func siteRows(r *heap.Replayer, by map[siteKey]*tally, have map[Class]heap.Count, e *estimate) []SiteRow {
	rows, keys := make([]SiteRow, 0, len(by)), make([]siteKey, 0, len(by))
	var classes []Class
	for k := range by {
		keys = append(keys, k)
		classes = append(classes, k.class)
	}
	slices.SortFunc(keys, func(a, b siteKey) int {
		return cmp.Or(cmp.Compare(by[b].bytes.Sum, by[a].bytes.Sum), cmp.Compare(a.class.Name, b.class.Name), cmp.Compare(a.class.Loader, b.class.Loader),
			cmp.Compare(a.frame, b.frame))
	})
	for c := range have {
		classes = append(classes, c)
	}
	shared := loaders(r, classes)
	left := maps.Clone(have)
	reserved := map[Class]heap.Count{} // the lower bounds of the rows to come: an estimate that is too high leaves them so much
	for _, k := range keys {
		t, n := by[k], have[k.class]
		row := SiteRow{Class: k.class.Name, Loader: shared[k.class], Site: Stack(r, k.frame, maxFrames), Samples: t.n, ExactBytes: t.sampled}
		row.ObjectsLow, row.ObjectsHigh = t.objects.Bounds(t.n, n.Objects)
		row.BytesLow, row.BytesHigh = t.bytes.Bounds(t.sampled, n.Bytes)
		c := reserved[k.class]
		reserved[k.class] = heap.Count{Objects: c.Objects + row.ObjectsLow, Bytes: c.Bytes + row.BytesLow}
		rows = append(rows, row)
	}
	for i, k := range keys {
		t, row, rest := by[k], &rows[i], left[k.class]
		objects, bytes := t.objects.Sum, t.bytes.Sum
		if e != nil {
			objects, bytes = float64(t.n)+e.objects[k], float64(t.sampled)+e.bytes[k]
		}
		c := reserved[k.class]
		c = heap.Count{Objects: c.Objects - row.ObjectsLow, Bytes: c.Bytes - row.BytesLow}
		reserved[k.class] = c
		row.Objects = apportion(objects, &row.ObjectsLow, row.ObjectsHigh, rest.Objects, c.Objects)
		row.Bytes = apportion(bytes, &row.BytesLow, row.BytesHigh, rest.Bytes, c.Bytes)
		left[k.class] = heap.Count{Objects: rest.Objects - row.Objects, Bytes: rest.Bytes - row.Bytes}
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Bytes > rows[j].Bytes })
	return append(rows, noSite(left, have, shared, e)...)
}

// apportion gives an estimate as a whole number within its bounds that leaves of rest what is reserved for others. Where a class has less than the lower
// bounds of all its sites, low is less too.
func apportion(estimate float64, low *uint64, high, rest, reserved uint64) uint64 {
	v := min(max(uint64(math.Round(min(estimate, 1<<62))), *low), high)
	v = min(v, max(*low, rest-min(rest, reserved)), rest)
	*low = min(*low, v)
	return v
}

// noSite gives the children of each class that are no sites: what is left of it.
func noSite(left, have map[Class]heap.Count, shared map[Class]string, e *estimate) (rows []SiteRow) {
	for c, l := range left {
		all := have[c]
		var b heap.Count
		if e != nil {
			b = e.before[c]
			b = heap.Count{Objects: min(b.Objects, l.Objects), Bytes: min(b.Bytes, l.Bytes)}
		}
		row := SiteRow{Class: c.Name, Loader: shared[c], Child: SiteUnknown, Site: []StackFrame{}, Objects: l.Objects - b.Objects, ObjectsHigh: min(all.Objects, l.Objects),
			Bytes: l.Bytes - b.Bytes, BytesHigh: min(all.Bytes, l.Bytes)}
		rows = append(rows, row)
		row.Child, row.Objects, row.ObjectsHigh, row.Bytes, row.BytesHigh = BeforeTape, b.Objects, b.Objects, b.Bytes, b.Bytes
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b SiteRow) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Loader, b.Loader), cmp.Compare(b.Child, a.Child))
	})
	return rows
}

// grownSites gives the sites whose live bytes grew, by growth; the first max of them.
func grownSites(r *heap.Replayer, first, last map[siteKey]*tally, max int) []GrownSite {
	type grown struct {
		k                       siteKey
		samples, objects, bytes float64
	}
	var all []grown
	var classes []Class
	for k, l := range last {
		g := grown{k, float64(l.n), l.objects.Sum, l.bytes.Sum}
		if f := first[k]; f != nil {
			g = grown{k, g.samples - float64(f.n), g.objects - f.objects.Sum, g.bytes - f.bytes.Sum}
		}
		if g.bytes > 0 {
			all = append(all, g)
			classes = append(classes, k.class)
		}
	}
	slices.SortFunc(all, func(a, b grown) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.k.class.Name, b.k.class.Name), cmp.Compare(a.k.frame, b.k.frame))
	})
	shared := loaders(r, classes)
	out := []GrownSite{}
	for _, g := range all[:min(len(all), max)] {
		out = append(out, GrownSite{Class: g.k.class.Name, Loader: shared[g.k.class], Site: Stack(r, g.k.frame, maxFrames), Samples: int64(g.samples),
			Objects: int64(math.Round(g.objects)), Bytes: int64(math.Round(g.bytes))})
	}
	return out
}

// GrownSite is a site that grew between the first and the last known collection, estimated from samples. Samples is how many more live.
type GrownSite struct {
	Class   string       `json:"class"`
	Loader  string       `json:"loader,omitempty"`
	Site    []StackFrame `json:"site"`
	Samples int64        `json:"samples"`
	Objects int64        `json:"objects"`
	Bytes   int64        `json:"bytes"`
}
