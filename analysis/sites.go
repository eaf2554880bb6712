package analysis

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// SiteRow is what lives of one class from one allocation stack, estimated from the samples that live. Low and High are 95 % intervals; at
// interval 0 every object is a sample and the three are equal. An estimate never exceeds what the class has (that is exact). Objects older
// than the recording have no samples: they belong to no site.
type SiteRow struct {
	Class       string       `json:"class"`
	Loader      string       `json:"loader,omitempty"` // where two classes share a name
	Site        []StackFrame `json:"site"`
	Samples     uint64       `json:"samples"`
	Objects     uint64       `json:"objects"`
	ObjectsLow  uint64       `json:"objects_low"`
	ObjectsHigh uint64       `json:"objects_high"`
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
	return t.sum * (1 - (1-chi2(0, k)/k)*f), t.sum * (1 + (chi2(1, k+1)/k-1)*f)
}

// chi2 is half the 2.5 % (tail 0) or 97.5 % (tail 1) quantile of χ² with 2k degrees of freedom.
func chi2(tail int, k float64) float64 {
	z := 1.959964 * float64(2*tail-1)
	c := max(0, 1-1/(9*k)+z/math.Sqrt(9*k))
	return k * c * c * c
}

// siteTallies sums samples by site.
func siteTallies(r *heap.Replayer, samples iter.Seq[*heap.Sample]) map[siteKey]*tally {
	out := map[siteKey]*tally{}
	class := map[uint64]Class{}
	for s := range samples {
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

// Sites gives what lives by site in the state of r, the most bytes first.
func Sites(r *heap.Replayer) []SiteRow {
	return siteRows(r, siteTallies(r, maps.Values(r.Live)), byClass(r, r.State.PerType()))
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

// siteRows renders tallies; have is the exact count of each class, which bounds the estimates.
func siteRows(r *heap.Replayer, by map[siteKey]*tally, have map[Class]heap.Count) []SiteRow {
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
	shared := loaders(r, classes)
	for _, k := range keys {
		t := by[k]
		row := SiteRow{Class: k.class.Name, Loader: shared[k.class], Site: Stack(r, k.frame, maxFrames), Samples: t.n}
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
		rows = append(rows, row)
	}
	return rows
}

// maxFrames bounds the frames of a site in what is printed.
const maxFrames = 64

// grownSites gives the sites whose live bytes grew, by growth; the first max of them.
func grownSites(r *heap.Replayer, first, last map[siteKey]*tally, max int) []GrownSite {
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
