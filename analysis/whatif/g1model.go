package whatif

import (
	"math/bits"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// recordedG1 finds the heap of a recording of G1. Its eden has the size that it had, if that hardly changed, else
// the JVM's default bounds.
func (m *Model) recordedG1(causes map[string]int) error {
	t := m.tape
	var edens []uint64
	for i := range t.Epochs {
		if e := &t.Epochs[i]; collected(e.Kind) && e.EdenBefore > 0 {
			edens = append(edens, e.EdenBefore)
		}
	}
	heap := t.JVM.MaxHeap / 8
	if len(edens) == 0 || heap == 0 || t.JVM.RegionWords == 0 || heap/t.JVM.RegionWords < 4 {
		return ErrNoYoung
	}
	slices.Sort(edens)
	m.shape = shape{align: 512 << 10 / 8, ratio: 6, threshold: 15}
	least, most := edens[len(edens)/10], edens[len(edens)-1]
	young := uint64(0)
	if most-least <= t.JVM.RegionWords {
		young = most
	}
	m.Recorded = m.sizedG1(8*heap, 8*young, t.JVM.RegionWords)
	all := t.End() + t.Tail
	if all > mostAllocated || heap > mostAllocated || all/edens[0] > mostPerEpoch*uint64(len(t.Epochs)+1) ||
		all/m.Recorded.Least > mostSteps {
		return ErrImplausible
	}
	m.doubt(nil, nil, causes)
	return nil
}

// mostSteps is the most collections that a recording of G1 may make possible.
const mostSteps = 1 << 22

// sizedG1 gives the configuration of G1 with a heap of so many bytes. young is the size of eden in bytes, 0 if the JVM
// chooses it between its default bounds; region the words of a region, 0 for the JVM's own choice.
func (m *Model) sizedG1(heap, young, region uint64) Config {
	words := heap / 8
	if region == 0 { // a power of two from 1 to 32 MiB
		region = uint64(1) << (bits.Len64(max(1, words/g1Regions)) - 1)
		region = min(max(region, 1<<17), 1<<22)
	}
	words -= words % region
	least, most := uint64(g1Least*float64(words)), uint64(g1Most*float64(words))
	if young > 0 {
		least, most = young/8, young/8
	}
	round := func(n uint64) uint64 { return max(1, (n+region/2)/region) * region }
	least, most = round(least), round(most)
	r := Regional{Region: region, Least: least, IHOP: g1IHOP, Goal: g1Goal, Fixed: m.Pauses.Fixed,
		PerWord: 8*m.Pauses.PerByte + m.Pauses.PerObject/usualWords}
	c := Config{Collector: trace.CollectorG1, Eden: most, Threshold: 15, Regional: r}
	if words > most {
		c.Old = words - most
	}
	return c
}

// requestG1 gives the configurations of G1 that a request is for.
func (m *Model) requestG1(q *Request) ([]Config, error) {
	if len(q.Old) > 0 || q.Mode == ModeProbabilities {
		return nil, ErrG1
	}
	heaps, youngs := q.Heap, q.Young
	if len(heaps) == 0 {
		steps := []float64{0.5, 0.75, 1, 1.5, 2, 4}
		if (q.Goal != Goal{}) {
			steps = []float64{0.5, 0.625, 0.75, 0.875, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8}
		}
		for _, f := range steps {
			heaps = append(heaps, uint64(8*f*float64(m.Recorded.heap())))
		}
	}
	if len(youngs) == 0 {
		youngs = []uint64{0}
		if m.Recorded.regional() && m.Recorded.Least == m.Recorded.Eden {
			youngs = []uint64{8 * m.Recorded.Eden}
		}
	}
	var configs []Config
	for _, heap := range heaps {
		for _, young := range youngs {
			region := uint64(0)
			if m.Recorded.regional() && heap/8 >= m.Recorded.heap()/2 && heap/8 <= 2*m.Recorded.heap() {
				region = m.Recorded.Region
			}
			if c := m.sizedG1(heap, young, region); c.Old >= 2*c.Region && !slices.Contains(configs, c) {
				configs = append(configs, c)
			}
		}
	}
	if len(configs) == 0 {
		return nil, ErrNoConfig
	}
	return configs, nil
}
