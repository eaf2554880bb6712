package analysis

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"sort"

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
	objects total
	bytes   total
	sampled uint64 // bytes of the samples themselves
}

// total is a Horvitz–Thompson sum of x over samples of weight w: Σwx, Σ(wx)², and the variance's estimate Σ(wx)²(1−1/w).
type total struct{ sum, square, variance float64 }

func (t *total) add(x, w float64) {
	t.sum += w * x
	t.square += w * x * w * x
	t.variance += w * x * w * x * (1 - 1/w)
}

func (t *tally) add(s *heap.Sample) {
	t.n++
	t.objects.add(1, s.Weight)
	t.bytes.add(float64(s.Size), s.Weight)
	t.sampled += s.Size
}

// interval gives the 95 % interval of a sum. Few samples are far from a normal distribution: the count is taken as Poisson's (exact bounds
// by Wilson and Hilferty's cube root), with the number of samples that equal weights would need, and narrowed by the share of the
// population that was not drawn.
func (t *total) interval() (low, high float64) {
	if t.square == 0 {
		return 0, 0
	}
	k := t.sum * t.sum / t.square
	f := math.Sqrt(max(t.variance, 0) / t.square)
	return t.sum * (1 - (1-seen(k)/k)*f), t.sum * (1 + (chi2(1, k+1)/k-1)*f)
}

// seen is the mean of a Poisson count that is k or more with a probability of 2.5 % if it is 1 or more: a site without a sample has no row.
func seen(k float64) float64 {
	if k > 30 {
		return chi2(0, k)
	}
	from, to := 0.0, k
	for range 40 {
		x := (from + to) / 2
		term := 1.0 // of the series of the incomplete gamma function: P(count ≥ k)
		sum := term
		for i := 1.0; term > 1e-12*sum; i++ {
			term *= x / (k + i)
			sum += term
		}
		g, _ := math.Lgamma(k + 1)
		if sum*math.Exp(k*math.Log(x)-x-g) < 0.025*-math.Expm1(-x) {
			from = x
		} else {
			to = x
		}
	}
	return from
}

// chi2 is half the 2.5 % (tail 0) or 97.5 % (tail 1) quantile of χ² with 2k degrees of freedom.
func chi2(tail int, k float64) float64 {
	z := 1.959964 * float64(2*tail-1)
	c := max(0, 1-1/(9*k)+z/math.Sqrt(9*k))
	return k * c * c * c
}

// byID gives samples in the order in which they were taken: sums of their weights come out the same, to the last bit, each time.
func byID(samples iter.Seq[*heap.Sample]) iter.Seq[*heap.Sample] {
	return slices.Values(slices.SortedFunc(samples, func(a, b *heap.Sample) int { return cmp.Compare(a.ID, b.ID) }))
}

// siteTallies sums samples by site.
func siteTallies(r *heap.Symbols, samples iter.Seq[*heap.Sample]) map[siteKey]*tally {
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
func Sites(r *heap.View, gc uint64) []SiteRow {
	return siteRows(r.Symbols, siteTallies(r.Symbols, maps.Values(r.Live)), byClass(r.Symbols, r.State.PerType()), stratify(r, gc, nil).estimate())
}

// byClass adds up counts by type id.
func byClass(r *heap.Symbols, perType []heap.Count) map[Class]heap.Count {
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
func siteRows(r *heap.Symbols, by map[siteKey]*tally, have map[Class]heap.Count, e *estimate) []SiteRow {
	rows, keys := make([]SiteRow, 0, len(by)), make([]siteKey, 0, len(by))
	var classes []Class
	for k := range by {
		keys = append(keys, k)
		classes = append(classes, k.class)
	}
	slices.SortFunc(keys, func(a, b siteKey) int {
		return cmp.Or(cmp.Compare(by[b].bytes.sum, by[a].bytes.sum), cmp.Compare(a.class.Name, b.class.Name), cmp.Compare(a.class.Loader, b.class.Loader),
			cmp.Compare(a.frame, b.frame))
	})
	for c := range have {
		classes = append(classes, c)
	}
	shared := loaders(r, classes)
	left := maps.Clone(have)
	for _, k := range keys {
		t := by[k]
		row := SiteRow{Class: k.class.Name, Loader: shared[k.class], Site: Stack(r, k.frame, maxFrames), Samples: t.n, ExactBytes: t.sampled}
		round := func(s *total, least, most uint64) (v, lo, hi uint64) {
			l, h := s.interval()
			if s.sum > float64(most) { // what the class has is exact; the uncertainty stays what it is
				l *= float64(most) / s.sum
			}
			fit := func(x float64) uint64 { return min(max(uint64(math.Round(min(x, 1<<62))), least), max(most, least)) }
			return fit(s.sum), fit(l), fit(h)
		}
		n := have[k.class]
		row.Objects, row.ObjectsLow, row.ObjectsHigh = round(&t.objects, t.n, n.Objects)
		row.Bytes, row.BytesLow, row.BytesHigh = round(&t.bytes, t.sampled, n.Bytes)
		rest := left[k.class]
		if e != nil {
			row.Objects = min(max(t.n+uint64(math.Round(e.objects[k])), row.ObjectsLow), row.ObjectsHigh)
			row.Bytes = min(max(t.sampled+uint64(math.Round(e.bytes[k])), row.BytesLow), row.BytesHigh)
		}
		if rest.Objects < row.Objects || rest.Bytes < row.Bytes { // estimates of a class with few samples may be too many together
			row.Objects, row.Bytes = min(row.Objects, rest.Objects), min(row.Bytes, rest.Bytes)
			row.ObjectsLow, row.BytesLow = min(row.ObjectsLow, row.Objects), min(row.BytesLow, row.Bytes)
		}
		left[k.class] = heap.Count{Objects: rest.Objects - row.Objects, Bytes: rest.Bytes - row.Bytes}
		rows = append(rows, row)
	}
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Bytes > rows[j].Bytes })
	return append(rows, noSite(left, have, shared, e)...)
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

// maxFrames bounds the frames of a site in what is printed.
const maxFrames = 512

// grownSites gives the sites whose live bytes grew, by growth; the first max of them.
func grownSites(r *heap.Symbols, first, last map[siteKey]*tally, max int) []GrownSite {
	type grown struct {
		k                       siteKey
		samples, objects, bytes float64
	}
	var all []grown
	var classes []Class
	for k, l := range last {
		g := grown{k, float64(l.n), l.objects.sum, l.bytes.sum}
		if f := first[k]; f != nil {
			g = grown{k, g.samples - float64(f.n), g.objects - f.objects.sum, g.bytes - f.bytes.sum}
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
