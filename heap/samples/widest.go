package samples

import (
	"iter"

	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/trace"
)

// Widest says what the samples of a state may have missed while the interval was longer than at other times: a site
// that has samples from then is in no doubt, one that has none may have allocated without being drawn. The zero value
// says that nothing was missed. Use Missed.
type Widest struct {
	interval uint64
	times    float64 // what was missed, as a number of samples
}

// WidestOf looks at the live samples of a state. Of the intervals it takes the one under which the most bytes may have
// been missed: stats.NoneDrawn intervals, and no more than all its samples stand for.
func WidestOf(live iter.Seq[*Sample]) (w Widest) {
	var n Intervals
	for s := range live {
		n.Add(s.Interval)
	}
	return n.Widest()
}

// Intervals counts samples by interval.
type Intervals struct {
	of   map[uint64]uint64
	last uint64 // neighbors mostly have the same
	more uint64 // samples of that, not yet in of
}

// Add adds a sample.
func (n *Intervals) Add(interval uint64) {
	if interval != n.last {
		n.flush()
		n.last = interval
	}
	n.more++
}

func (n *Intervals) flush() {
	if n.of == nil {
		n.of = map[uint64]uint64{}
	}
	n.of[n.last] += n.more
	n.more = 0
}

// Widest is WidestOf the samples that were added.
func (n *Intervals) Widest() (w Widest) {
	n.flush()
	for interval, samples := range n.of {
		x := Widest{interval, min(float64(samples), stats.NoneDrawn)}
		if a, b := x.bytes(), w.bytes(); a > b || a == b && x.interval > w.interval {
			w = x
		}
	}
	return w
}

func (w Widest) bytes() float64 { return float64(w.interval) * w.times }

// Missed gives how many objects of a sample's kind and size may have been missed, at most: 0 if it is a sample of the
// time when the interval was the longest, -1 if it says nothing, as an object of a time when each was drawn.
func (w Widest) Missed(size, interval uint64) float64 {
	switch {
	case interval == 0:
		return -1
	case interval >= w.interval:
		return 0
	}
	return w.times * trace.Weight(size, w.interval)
}
