package sites

import (
	"io"
	"math"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Calibration says how far inference and intervals keep what they state: the samples of a recording at interval 0,
// which knows the site of each object, are thinned as a longer interval would have, sites of the other objects are
// inferred, and the truth is looked up.
type Calibration struct {
	Interval uint64 `json:"interval_bytes"`
	Seeds    int    `json:"seeds"`
	Objects  uint64 `json:"objects"` // with a known site, after the last collection
	Sites    int    `json:"sites"`
	// Bins by the stated probability of an object's likeliest site.
	Bins [10]CalibrationBin `json:"bins"`
	// Intervals is how many sites had a sample, over all seeds; Held of how many the 95 % interval holds the true number
	// of objects.
	Intervals   int     `json:"intervals"`
	Held        int     `json:"held"`
	MeanStated  float64 `json:"unseen_stated"`  // mean mass that was kept for sites without a sample
	MeanUnseen  float64 `json:"unseen_true"`    // share of the objects whose site has none in their class
	InferredAll float64 `json:"inferred"`       // share of the objects that quality counts as inferred
	InferredOK  float64 `json:"inferred_right"` // share of the objects whose class has their site as its likeliest
}

// CalibrationBin counts the objects whose likeliest site has a probability in a tenth.
type CalibrationBin struct {
	Objects uint64  `json:"objects"`
	Stated  float64 `json:"stated"` // mean
	Right   float64 `json:"right"`  // share
}

// Calibrate thins the samples of r, which stands after collection gc, seeds times.
func Calibrate(r *heap.View, gc, interval uint64, seeds int) *Calibration {
	c := &Calibration{Interval: interval, Seeds: seeds}
	truth := Stratify(r, gc, nil)
	class := map[uint64]Class{}
	all := map[Key]float64{}
	for _, s := range r.Live {
		if _, ok := class[s.Type]; !ok {
			class[s.Type] = ClassOf(r.Symbols, uint32(s.Type)).Folded()
		}
		all[Key{s.Frame, class[s.Type]}]++
		c.Objects++
	}
	c.Sites = len(all)
	have := ByClass(r.Symbols, r.State.PerType())
	var asked, stated, unseen, inferred, right float64
	for seed := range seeds {
		keep := func(s *heap.Sample) bool {
			// a hash: each object has its own draw, the same for all looks at it
			x := (s.ID+uint64(seed)<<40)*0x9e3779b97f4a7c15 ^ 0x5851f42d4c957f2d
			x = (x ^ x>>31) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>29) * 0x94d049bb133111eb
			return float64((x^x>>32)>>11)/(1<<53) < -math.Expm1(-float64(s.Size)/float64(interval))
		}
		st := Stratify(r, gc, keep)
		types := map[uint64]map[uint64]float64{} // kept, by type and frame
		others := map[uint64]map[uint64]float64{}
		tallies := map[Key]*Tally{}
		for _, s := range r.Live {
			to := others
			if keep(s) {
				to = types
				k := Key{s.Frame, class[s.Type]}
				if tallies[k] == nil {
					tallies[k] = &Tally{}
				}
				w := *s
				w.Weight = 1 / -math.Expm1(-float64(s.Size)/float64(interval))
				tallies[k].add(&w)
			}
			if to[s.Type] == nil {
				to[s.Type] = map[uint64]float64{}
			}
			to[s.Type][s.Frame]++
		}
		for k, t := range tallies {
			low, high := t.objects.Interval()
			c.Intervals++
			if n := all[k]; max(low, float64(t.n)) <= n+1e-6 && n <= min(high, float64(have[k.Class].Objects))+1e-6 {
				c.Held++
			}
		}
		for typ, sites := range others {
			n, top, at, m := 0.0, 0.0, uint64(0), 0.0
			for f, k := range types[typ] {
				n += k
				if k > top || k == top && f < at {
					top, at = k, f
				}
			}
			for _, k := range sites {
				m += k
			}
			if n > 0 {
				inferred += m * coverage.Known(n, top)
				right += sites[at]
			}
		}
		for k, x := range truth.kinds {
			kept := st.kinds[k]
			best, p, sum := uint64(0), 0.0, 0.0
			st.shares(k, func(f uint64, q float64) {
				sum += q
				if q > p || q == p && f < best {
					best, p = f, q
				}
			})
			others := x.n - kept.n
			if others <= 0 {
				continue
			}
			b := &c.Bins[min(9, int(p*10))]
			b.Objects += uint64(others)
			b.Stated += p * others
			b.Right += x.sites[best] - kept.sites[best]
			asked += others
			stated += (1 - sum) * others
			for f, n := range x.sites {
				if cl := st.classes[k.class]; cl == nil || cl.sites[f] == 0 {
					unseen += n - kept.sites[f]
				}
			}
		}
	}
	for i := range c.Bins {
		if b := &c.Bins[i]; b.Objects > 0 {
			b.Stated /= float64(b.Objects)
			b.Right /= float64(b.Objects)
		}
	}
	if asked > 0 {
		c.MeanStated, c.MeanUnseen, c.InferredAll, c.InferredOK = stated/asked, unseen/asked, inferred/asked, right/asked
	}
	return c
}

// WriteText prints the table.
func (c *Calibration) WriteText(w io.Writer) {
	ui.Fprintf(w, "%d objects of %d sites, %d times thinned to one sample in %s\n", c.Objects, c.Sites, c.Seeds,
		ui.Bytes(c.Interval))
	ui.Fprintf(w, "%-12s %12s %8s %8s\n", "PROBABILITY", "OBJECTS", "STATED", "RIGHT")
	for i, b := range c.Bins {
		if b.Objects > 0 {
			ui.Fprintf(w, "%.1f to %.1f   %12d %7.1f%% %7.1f%%\n", float64(i)/10, float64(i+1)/10, b.Objects, 100*b.Stated,
				100*b.Right)
		}
	}
	ui.Fprintf(w, "sites without a sample: stated %.1f %%, true %.1f %% of the objects\n", 100*c.MeanStated,
		100*c.MeanUnseen)
	ui.Fprintf(w, "counted as inferred: %.1f %% of the objects; of the likeliest site of their class are %.1f %%\n",
		100*c.InferredAll, 100*c.InferredOK)
	ui.Fprintf(w, "95 %% intervals: %d, of which %.2f %% hold the true number\n", c.Intervals,
		100*float64(c.Held)/float64(max(c.Intervals, 1)))
}
