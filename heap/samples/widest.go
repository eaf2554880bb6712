package samples

import (
	"iter"

	"github.com/heapcam/heapcam/trace"
)

// Widest says what the samples of a state may have missed while the interval was longer than at other times: a site
// that has samples from then is in no doubt, one that has none may have allocated without being drawn. The zero value
// says that nothing was missed. Use Missed.
type Widest struct {
	interval uint64
	times    float64 // what was missed, as a number of samples
}

// noneDrawn is the mean of a Poisson count that was 0, at most, with a probability of 97.5 %.
const noneDrawn = 3.688879

// WidestOf looks at the live samples of a state. Of the intervals it takes the one under which the most bytes may have
// been missed: noneDrawn intervals, and no more than all its samples stand for.
func WidestOf(live iter.Seq[*Sample]) (w Widest) {
	var n Intervals
	for s := range live {
		n.Add(s.Interval)
	}
	return n.Widest()
}

// Intervals counts samples by interval.
type Intervals struct{ of []intervalCount }

type intervalCount struct{ interval, samples uint64 }

// Add adds a sample. There are few intervals, and neighbors mostly have the same: the last one is found first.
func (n *Intervals) Add(interval uint64) {
	for i := len(n.of) - 1; i >= 0; i-- {
		if n.of[i].interval == interval {
			n.of[i].samples++
			return
		}
	}
	n.of = append(n.of, intervalCount{interval, 1})
}

// Widest is WidestOf the samples that were added.
func (n *Intervals) Widest() (w Widest) {
	for _, x := range n.of {
		times := min(float64(x.samples), noneDrawn)
		if float64(x.interval)*times > float64(w.interval)*w.times {
			w = Widest{x.interval, times}
		}
	}
	return w
}

// Missed gives how many objects of a sample's kind and size may have been missed, at most: 0 if it is a sample of the
// time when the interval was the longest. Where each object was drawn none was missed.
func (w Widest) Missed(size, interval uint64) float64 {
	if interval == 0 || interval >= w.interval {
		return 0
	}
	return w.times * trace.Weight(size, w.interval)
}
