package sites

import (
	"io"
	"math"

	"github.com/heapcam/heapcam/coverage"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
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
	// Intervals is how many sites had a sample, over all seeds; Held of how many the 95 % interval holds the true
	// number of objects.
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

// Calibrate thins the samples of r seeds times.
func Calibrate(r *heap.View, interval uint64, seeds int) *Calibration {
	k := &calibrating{c: &Calibration{Interval: interval, Seeds: seeds}, r: r, class: map[uint64]Class{},
		all: map[Key]float64{}, have: ByClass(r.Symbols, r.Totals.PerType())}
	for _, s := range r.Live.All() {
		if _, ok := k.class[s.Type]; !ok {
			k.class[s.Type] = ClassOf(r.Symbols, uint32(s.Type)).Folded()
		}
		k.all[Key{s.Frame, k.class[s.Type]}]++
		k.c.Objects++
	}
	k.c.Sites = len(k.all)
	for seed := range seeds {
		k.samples(func(s *heap.Sample) bool { return drawn(s, seed, interval) })
	}
	return k.result()
}

// drawn says whether sampling at an interval draws the object of s.
func drawn(s *heap.Sample, seed int, interval uint64) bool {
	return samples.Drawn(s.ID+uint64(seed)<<40, -math.Expm1(-float64(s.Size)/float64(interval)))
}

// calibrating is a calibration that is being made.
type calibrating struct {
	c     *Calibration
	r     *heap.View
	class map[uint64]Class // by type
	all   map[Key]float64  // objects of each site
	have  map[Class]heap.Count

	asked, stated, unseen, inferred, right float64 // objects, over all seeds
}

// samples looks at what the samples that are kept say of their sites, and of the others of their type.
func (k *calibrating) samples(keep func(*heap.Sample) bool) {
	kept, others := map[uint64]map[uint64]float64{}, map[uint64]map[uint64]float64{} // by type and frame
	state := State{Symbols: k.r.Symbols, Types: k.r.Totals.PerType()}
	for _, s := range k.r.Live.All() {
		to := others
		if keep(s) {
			to = kept
			w := *s
			w.Weight = 1 / -math.Expm1(-float64(s.Size)/float64(k.c.Interval))
			state.Samples = append(state.Samples, &w)
		}
		if to[s.Type] == nil {
			to[s.Type] = map[uint64]float64{}
		}
		to[s.Type][s.Frame]++
	}
	k.intervals(state.Tallies())
	for typ, sites := range others {
		k.likeliest(sites, kept[typ])
	}
}

// intervals counts the sites whose interval, as the verbs print it, holds the truth.
func (k *calibrating) intervals(tallies map[Key]*Tally) {
	for key, t := range tallies {
		low, high := t.objectBounds(k.have[key.Class].Objects)
		k.c.Intervals++
		if n := uint64(k.all[key]); low <= n && n <= high {
			k.c.Held++
		}
	}
}

// likeliest compares what the samples of a type that are kept say of its other objects with the truth, as package
// coverage does.
func (k *calibrating) likeliest(others, kept map[uint64]float64) {
	n, top, at, m := 0.0, 0.0, uint64(0), 0.0
	for f, objects := range kept {
		n += objects
		if objects > top || objects == top && f < at {
			top, at = objects, f
		}
	}
	for f, objects := range others {
		m += objects
		if kept[f] == 0 {
			k.unseen += objects
		}
	}
	k.asked += m
	k.stated += m
	b, p := &k.c.Bins[0], 0.0
	if n > 0 {
		p = coverage.Known(n, top)
		b = &k.c.Bins[min(9, int(p*10))]
		k.stated += m * (coverage.Unseen(n, float64(len(kept))) - 1)
		k.inferred += m * p
		k.right += others[at]
		b.Right += others[at]
	}
	b.Objects += uint64(m)
	b.Stated += p * m
}

// result makes means of sums.
func (k *calibrating) result() *Calibration {
	c := k.c
	for i := range c.Bins {
		if b := &c.Bins[i]; b.Objects > 0 {
			b.Stated /= float64(b.Objects)
			b.Right /= float64(b.Objects)
		}
	}
	if k.asked > 0 {
		c.MeanStated, c.MeanUnseen = k.stated/k.asked, k.unseen/k.asked
		c.InferredAll, c.InferredOK = k.inferred/k.asked, k.right/k.asked
	}
	return c
}

// WriteText prints the table.
func (c *Calibration) WriteText(w io.Writer) {
	style, verdict := ui.Good, ui.Flow("The intervals are reliable")
	if float64(c.Held) < 0.95*float64(c.Intervals)-2*math.Sqrt(0.95*0.05*float64(c.Intervals)) {
		style, verdict = ui.Doubt, "The intervals are too narrow here"
	}
	ui.Headline(w, style, ui.Flowf("%s: %s of the 95 %% intervals hold the true number of objects.", verdict,
		ui.Flow(ui.Part(c.Held, max(c.Intervals, 1)))))
	ui.Paragraph(w, "", 0, ui.Flowf("%d objects of %d sites. %s, samples were removed until one in %s was left; then "+
		"the sites were estimated and compared with the true ones.", c.Objects, c.Sites,
		ui.Flow(ui.Plural(uint64(c.Seeds), "time")), ui.Flow(ui.Bytes(c.Interval))))
	ui.Section(w, "Is the likeliest site of an object the true one? (objects without a sample, all times together)")
	t := ui.NewColumns(2, "PROBABILITY", ">OBJECTS", ">EXPECTED", ">TRUE")
	for i, b := range c.Bins {
		if b.Objects > 0 {
			t.Row(ui.Flowf("%.1f to %.1f", float64(i)/10, float64(i+1)/10), b.Objects, ui.Share(b.Stated),
				ui.Share(b.Right))
		}
	}
	t.Write(w)
	ui.Paragraph(w, "", 2, "EXPECTED and TRUE should be alike where there are many objects.")
	ui.Section(w, "Shares of the objects without a sample")
	t = ui.NewColumns(2, ">EXPECTED", ">TRUE", "")
	t.Row(ui.Share(c.InferredAll), ui.Share(c.InferredOK), "the likeliest site of their class is theirs (inferred)")
	t.Row(ui.Share(c.MeanStated), ui.Share(c.MeanUnseen), "no object of their site has a sample")
	t.Write(w)
	ui.Field(w, "Intervals", ui.Flowf("%d were checked, one for each site with a sample", c.Intervals))
}
