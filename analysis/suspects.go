package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/heapcam/heapcam/heap"
)

// Suspect is a site whose surviving objects grow. Confidence is 1 − p of the test for a trend, corrected for what a series remembers of itself
// and for the number of sites that were tested: if no site of the heap grew, a report would name one with probability p.
type Suspect struct {
	Class          string       `json:"class"`
	Loader         string       `json:"loader,omitempty"` // where two classes share a name
	Site           []StackFrame `json:"site"`
	BytesPerSecond float64      `json:"bytes_per_second"`
	GrownBytes     uint64       `json:"grown_bytes"` // estimate over the window
	LiveSamples    int          `json:"live_samples"`
	Share          float64      `json:"share_of_growth"`
	Confidence     float64      `json:"confidence"`
	Sentence       string       `json:"sentence"`
}

// track is the series of a site: the weighted bytes of its live samples that have survived two collections, at each point of its tracks.
type track struct {
	bytes []float64 // those behind its end are 0
	n     int       // samples at the last point of bytes
	most  int       // samples at any point
}

func (t *track) add(i int, bytes float64) {
	if len(t.bytes) <= i {
		t.bytes = append(t.bytes, make([]float64, i+1-len(t.bytes))...)
		t.n = 0
	}
	t.bytes[i] += bytes
	t.n++
	t.most = max(t.most, t.n)
}

// tracks are the series of all sites. However long a recording is, they have fewer than 2·points points: when they are full every second one
// goes, and every second collection of those so far is looked at from then on.
type tracks struct {
	times  []float64 // of the points, seconds
	sites  map[siteKey]*track
	class  map[uint64]Class
	stride int
	seen   int              // collections so far
	newest *heap.Collection // if it is no point
}

func newTracks() *tracks {
	return &tracks{sites: map[siteKey]*track{}, class: map[uint64]Class{}, stride: 1}
}

// collection takes in the state of r after c.
func (ts *tracks) collection(r *heap.Replayer, c *heap.Collection) {
	ts.seen++
	if (ts.seen-1)%ts.stride != 0 {
		ts.newest = c
		return
	}
	if len(ts.times) == 2*points-1 {
		ts.halve()
		if (ts.seen-1)%ts.stride != 0 {
			ts.newest = c
			return
		}
	}
	ts.point(r, c)
}

// finish makes the newest collection the last point.
func (ts *tracks) finish(r *heap.Replayer) {
	if ts.newest != nil {
		ts.point(r, ts.newest)
	}
}

func (ts *tracks) point(r *heap.Replayer, c *heap.Collection) {
	ts.newest = nil
	ts.times = append(ts.times, float64(c.Start)/1e9)
	for _, s := range r.Live {
		if s.Birth+2 > c.GC {
			continue
		}
		cl, ok := ts.class[s.Type]
		if !ok {
			cl = ClassOf(r, uint32(s.Type)).folded()
			ts.class[s.Type] = cl
		}
		k := siteKey{s.Frame, cl}
		t := ts.sites[k]
		if t == nil {
			t = &track{}
			ts.sites[k] = t
		}
		t.add(len(ts.times)-1, float64(s.Size)*s.Weight)
	}
}

// halve keeps the points with even numbers.
func (ts *tracks) halve() {
	half := func(v []float64) []float64 {
		for i := 0; i < len(v); i += 2 {
			v[i/2] = v[i]
		}
		return v[:(len(v)+1)/2]
	}
	ts.times = half(ts.times)
	for _, t := range ts.sites {
		t.bytes = half(t.bytes)
	}
	ts.stride *= 2
}

const (
	points       = 120   // of a series that are looked at
	minPoints    = 8     // fewer show nothing
	minSamples   = 3     // a site with fewer at any time is no candidate: no test could find it
	significance = 0.05  // of the whole report
	blocksOf     = 12    // increments of the coarse test of drift
	surest       = 0.999 // what one window can say at most, whatever the tests assume
)

// suspects ranks sites by growth of what has survived two collections: Theil–Sen slope over the window, kept if two tests make chance
// unlikely; the larger p counts. Mann–Kendall's is robust against the sawtooth of ordinary collections. A live set remembers: its values are
// not independent, and the test's variance is corrected for that (Hamed and Rao, 1998). For sets that remember for long the correction is too
// small, since what little a window shows of it is taken for the trend: the test of drift asks whether the set grows more than one in which
// as many objects die as are born. Some of a thousand sites rise by chance: the probabilities are adjusted for the number of candidates
// (Holm).
//
// Old space holds dead objects until it is collected. If the window has enough full collections the series are of the live sets after those.
func (rep *Report) suspects(r *heap.Replayer, ts *tracks) {
	times := ts.times
	if len(times) < minPoints || times[len(times)-1] <= times[0] {
		return
	}
	idx := make([]int, 0, points)
	for i := range min(points, len(times)) {
		idx = append(idx, i*len(times)/min(points, len(times)))
	}
	idx[len(idx)-1] = len(times) - 1
	t := make([]float64, len(idx))
	for i, k := range idx {
		t[i] = times[k]
	}
	type candidate struct {
		key      siteKey
		slope, p float64
		live     int
	}
	var all []candidate
	var classes []Class
	v := make([]float64, len(idx))
	for k, tr := range ts.sites {
		if tr.most < minSamples {
			continue
		}
		for i, k := range idx {
			v[i] = 0
			if k < len(tr.bytes) {
				v[i] = tr.bytes[k]
			}
		}
		c := candidate{key: k}
		if len(tr.bytes) == len(times) {
			c.live = tr.n
		}
		if c.p = drift(v); c.p <= significance {
			slope, p := trend(t, v)
			c.slope, c.p = slope, max(p, c.p)
		}
		all = append(all, c)
		classes = append(classes, k.class)
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.p, b.p) })
	least := 0.0
	for i := range all {
		least = max(least, min(1, all[i].p*float64(len(all)-i)))
		all[i].p = least
	}
	all = slices.DeleteFunc(all, func(c candidate) bool { return c.p > significance || c.slope <= 0 || c.live < minSamples })
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.slope, a.slope), cmp.Compare(a.key.frame, b.key.frame), cmp.Compare(a.key.class.Name, b.key.class.Name))
	})
	window, total := times[len(times)-1]-times[0], 0.0
	for _, c := range all {
		total += c.slope * window
	}
	shared := loaders(r, classes)
	for _, c := range all[:min(len(all), 10)] {
		s := Suspect{Class: c.key.class.Name, Loader: shared[c.key.class], Site: Stack(r, c.key.frame, maxFrames), BytesPerSecond: c.slope,
			GrownBytes: uint64(c.slope * window), LiveSamples: c.live, Share: c.slope * window / total, Confidence: min(1-c.p, surest)}
		at := "an unknown site"
		if len(s.Site) > 0 {
			at = s.Site[0].String()
		}
		stays := "does not go away"
		if rep.OldCollections == 0 {
			stays = "stays; old space was not collected in this window, so some of it may be dead"
		}
		s.Sentence = fmt.Sprintf("%s from %s grows by about %s a second and %s (estimated from %d live samples).", withLoader(s.Class, s.Loader), at,
			Bytes(uint64(s.BytesPerSecond)), stays, s.LiveSamples)
		rep.Suspects = append(rep.Suspects, s)
	}
}

// drift gives the probability that a series whose increments have mean 0 ends as high as v: Student's test on the increments, single ones and
// those of a few long blocks, which holds bursts that last for several collections. The larger probability counts.
func drift(v []float64) float64 {
	p := 0.0
	for _, n := range []int{len(v) - 1, blocksOf} {
		if n >= len(v) {
			continue
		}
		mean, square := (v[len(v)-1]-v[0])/float64(n), 0.0
		for i := range n {
			d := v[(i+1)*(len(v)-1)/n] - v[i*(len(v)-1)/n] - mean
			square += d * d
		}
		if mean <= 0 {
			return 1
		}
		df := float64(n - 1)
		tt := mean * mean * float64(n) * df / square // t²; infinite if all increments are the same
		z := (8*df + 1) / (8*df + 3) * math.Sqrt(df*math.Log1p(tt/df))
		p = max(p, math.Erfc(z/math.Sqrt2)/2) // Wallace's approximation of the tail
	}
	return p
}

// trend gives the median of pairwise slopes of v over t and the probability that a series without a trend rises like that: Mann–Kendall's
// test, its variance corrected for ties and for autocorrelation.
func trend(t, v []float64) (slope, p float64) {
	var slopes []float64
	s := 0.0
	for i := range v {
		for j := i + 1; j < len(v); j++ {
			if t[j] > t[i] {
				slopes = append(slopes, (v[j]-v[i])/(t[j]-t[i]))
			}
			s += float64(cmp.Compare(v[j], v[i]))
		}
	}
	if len(slopes) == 0 || s <= 1 {
		return 0, 1
	}
	slices.Sort(slopes)
	slope = slopes[len(slopes)/2]
	_, ties := ranks(v)
	n := float64(len(v))
	variance := (n*(n-1)*(2*n+5) - ties) / 18 * inflation(t, v, slope)
	return slope, math.Erfc((s-1)/math.Sqrt(2*variance)) / 2
}

// inflation is Hamed and Rao's factor: by how much the variance of Mann–Kendall's sum is larger than that of independent values, from the
// autocorrelation of the ranks of what the trend leaves over. Lags whose correlation could be chance count as none.
func inflation(t, v []float64, slope float64) float64 {
	rest := make([]float64, len(v))
	for i := range v {
		rest[i] = v[i] - slope*t[i]
	}
	r, _ := ranks(rest)
	n := float64(len(r))
	mean, square := (n+1)/2, 0.0
	for i := range r {
		r[i] -= mean
		square += r[i] * r[i]
	}
	if square == 0 {
		return 1
	}
	sum := 0.0
	for lag := 1; lag < len(r)-2; lag++ {
		c := 0.0
		for i := lag; i < len(r); i++ {
			c += r[i] * r[i-lag]
		}
		if c /= square; math.Abs(c) > 1.96/math.Sqrt(n) {
			k := n - float64(lag)
			sum += k * (k - 1) * (k - 2) * c
		}
	}
	return max(1, 1+2*sum/(n*(n-1)*(n-2)))
}

// ranks gives the ranks of v from 1, equal values the middle of theirs, and Σ t(t−1)(2t+5) over groups of t equal values.
func ranks(v []float64) (r []float64, ties float64) {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(v[a], v[b]) })
	r = make([]float64, len(v))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && v[order[j]] == v[order[i]] {
			j++
		}
		for _, k := range order[i:j] {
			r[k] = float64(i+1+j) / 2
		}
		g := float64(j - i)
		ties += g * (g - 1) * (2*g + 5)
		i = j
	}
	return r, ties
}
