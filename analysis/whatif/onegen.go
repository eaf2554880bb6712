package whatif

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// OneGeneration is what the equations of ICPE'14 predict of a heap without generations. Sizes are in bytes.
type OneGeneration struct {
	Heap uint64 `json:"heap"` // bytes
	// allocated between two collections, by the lifetimes of all objects (equation 1); 0: the heap is too small
	ByLifetimes float64 `json:"by_lifetimes"`
	// the same, by the mean size and the mean lifetime alone (equation 2)
	ByMeans     float64 `json:"by_means"`
	Collections float64 `json:"collections"`   // by equation 1, of the length of the recording
	MeanSize    float64 `json:"mean_size"`     // of an object
	MeanLife    float64 `json:"mean_lifetime"` // of an object, in objects that were allocated while it lived
	// allocated between two full collections that had no other one between them; 0: the recording has none
	Measured float64 `json:"measured"`
	Count    int     `json:"measured_count"` // of such pairs
}

// Ratio is measured over predicted by equation 2; 0 if one of them is not known.
func (o *OneGeneration) Ratio() float64 {
	if o.Measured == 0 || o.ByMeans <= 0 {
		return 0
	}
	return o.Measured / o.ByMeans
}

// population says how many words live at a time.
type population struct {
	born, died       []uint64 // sorted times
	bornSum, diedSum []uint64 // words of the first i
}

func newPopulation(in *Input) *population {
	type event struct{ at, words uint64 }
	var born, died []event
	for i := range in.Born {
		born = append(born, event{in.Born[i], uint64(in.Words[i])})
		if in.Died[i] != Never {
			died = append(died, event{in.Died[i], uint64(in.Words[i])})
		}
	}
	p := &population{}
	sums := func(ev []event) (at, sum []uint64) {
		slices.SortFunc(ev, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		sum = append(sum, 0)
		for _, e := range ev {
			at, sum = append(at, e.at), append(sum, sum[len(sum)-1]+e.words)
		}
		return at, sum
	}
	p.born, p.bornSum = sums(born)
	p.died, p.diedSum = sums(died)
	return p
}

// at gives the words of the objects that were born before a time and die after it.
func (p *population) at(now uint64) uint64 {
	i, _ := slices.BinarySearch(p.born, now)
	j, found := slices.BinarySearch(p.died, now)
	for found && j < len(p.died) && p.died[j] == now {
		j++
	}
	return p.bornSum[i] - min(p.bornSum[i], p.diedSum[j])
}

// maxSteps bounds the collections that equation 1 steps through.
const maxSteps = 1 << 20

// equation1 gives the collections of a heap of so many words that is collected whenever it is full. False: what lives
// does not fit.
func (p *population) equation1(heap, end uint64) (collections int, mean float64, ok bool) {
	now := heap
	if p.at(0) > 0 {
		now = heap - min(heap, p.at(0))
	}
	first := now
	last := now
	for now <= end && collections < maxSteps {
		live := p.at(now)
		if live >= heap {
			return collections, 0, false
		}
		collections++
		last = now
		now += heap - live
	}
	if collections < 2 { // the first one begins with an empty heap
		return collections, float64(now - last), last > 0
	}
	return collections, float64(last-first) / float64(collections-1), true
}

// OneGeneration applies both equations to heaps of so many bytes.
func (m *Model) OneGeneration(heaps []uint64) []OneGeneration {
	in := Observed(m.tape, m.curve, Drawn, 512, 1)
	p := newPopulation(in)
	words, objects, lives := m.means(in)
	measuredHeap, measured, count := m.fullAlone()
	out := []OneGeneration{}
	for _, h := range heaps {
		o := OneGeneration{Heap: h}
		if objects > 0 && words > 0 {
			size := words / objects
			o.MeanSize, o.MeanLife = 8*size, lives/words
			o.ByMeans = max(0, 8*size*(float64(h/8)/size-o.MeanLife))
		}
		if n, mean, ok := p.equation1(h/8, in.End); ok {
			o.ByLifetimes, o.Collections = 8*mean, float64(n)
		}
		if h == measuredHeap {
			o.Measured, o.Count = measured, count
		}
		out = append(out, o)
	}
	return out
}

// means gives the words and the objects that were allocated, and the sum of all lifetimes in words.
func (m *Model) means(in *Input) (words, objects, lives float64) {
	words = float64(m.tape.End() + m.tape.Tail)
	objects = float64(m.tape.Len())
	for i := range m.tape.Epochs {
		e := &m.tape.Epochs[i]
		if objects += float64(e.UnseenObjects); e.UnseenObjects == 0 {
			objects += float64(e.UnseenWords) / usualWords
		}
	}
	for i := range in.Born {
		n := 1.0
		if in.Count != nil {
			n = float64(in.Count[i])
		}
		lives += n * float64(min(in.Died[i], in.End)-min(in.Died[i], in.End, in.Born[i]))
	}
	return words, objects, lives
}

// usualWords is the size of an object where the recording does not say it.
const usualWords = 5

// fullAlone gives how much was allocated between two full collections without another one between them, on average,
// and the heap (bytes in use before the second) in which this was so. There is none unless most collections were such
// ones: a few happen where much is alive, so they say nothing of the whole.
func (m *Model) fullAlone() (heap uint64, mean float64, count int) {
	used := uint64(0)
	for i := 1; i < len(m.tape.Epochs); i++ {
		e := &m.tape.Epochs[i]
		if e.Kind == trace.PauseFull && m.tape.Epochs[i-1].Kind == trace.PauseFull {
			count++
			used += e.EdenBefore + e.SurvivorBefore + e.OldBefore
			mean += 8 * float64(e.At-e.Begin)
		}
	}
	if 2*count <= len(m.tape.Epochs) {
		return 0, 0, 0
	}
	return 8 * used / uint64(count), mean / float64(count), count
}

// heaps gives the sizes that the equations are applied to: those of the predictions, in order, and a recorded
// one.
func (m *Model) heaps(ps []Prediction) (sizes []uint64) {
	for i := range ps {
		sizes = append(sizes, ps[i].Heap)
	}
	if h, _, n := m.fullAlone(); n > 0 {
		sizes = append(sizes, h)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}
