package whatif

import (
	"math/rand/v2"
	"slices"

	"github.com/heapcam/heapcam/analysis/lifetimes"
)

// Deaths says when an object dies whose death is known to lie between two collections.
type Deaths int

const (
	Drawn    Deaths = iota // as the recording's lifetimes are distributed
	Earliest               // just after it was last proven alive
	Latest                 // just before it was found dead
)

// made is about how many objects Observed makes for those that no collection saw. Each stands for several that are born
// and die together.
var made = float64(1 << 19)

// mostMade bounds them, as a multiple of made, however much the program allocated.
const mostMade = 16

// mostObserved is about how many entries stand for the objects that collections saw. Where there are more objects, an
// entry stands for several neighbours of the recording. Objects of at least ownEntry words always have their own.
var mostObserved = 1 << 21

const ownEntry = 1 << 10

// entries calls f for each entry: the object whose times it has, and the words and the number of all that it stands
// for.
func entries(t *lifetimes.Tape, rng *rand.Rand, f func(object int, words, count uint32)) {
	every := (len(t.Words)-1)/mostObserved + 1
	chosen, words, count := 0, uint32(0), 0
	for i, w := range t.Words {
		if every <= 1 || w >= ownEntry {
			f(i, w, 1)
			continue
		}
		words, count = words+w, count+1
		if rng.IntN(count) == 0 { // any of the neighbours, each with the same probability
			chosen = i
		}
		if count == every {
			f(chosen, words, uint32(count))
			words, count = 0, 0
		}
	}
	if count > 0 {
		f(chosen, words, uint32(count))
	}
}

// Observed gives the objects of a recording as they were seen, with their deaths drawn between the collections that
// bound them. Objects that no collection saw are made, so that the lifetimes have the recording's distribution; those
// that die younger than grain words are left out. c is the curve of all lifetimes.
func Observed(t *lifetimes.Tape, c *lifetimes.Curve, how Deaths, grain uint64, seed uint64) *Input {
	rng := rand.New(rand.NewPCG(seed, 0x68656170))
	in := &Input{End: t.End() + t.Tail}
	position := map[uint64]*births{}
	entries(t, rng, func(i int, words, count uint32) {
		born := t.Born[i]
		switch lo := t.BornLo[i]; {
		case t.Unknown[i]:
			born, in.before = 0, true
		case lo < born:
			b := position[born-lo]
			if b == nil {
				b = birthsIn(c, float64(born-lo))
				position[born-lo] = b
			}
			born -= min(born-lo, uint64(b.age(rng.Float64())))
		}
		died := t.Dead[i]
		if died != Never {
			died = death(born, t.Seen[i], died, how, c, rng)
		} else {
			died = undated(born, t.Seen[i], how, c, rng)
		}
		in.add(born, died, words, count)
	})
	u := unseen{in: in, c: c, grain: float64(grain), rng: rng}
	for i := range t.Epochs {
		u.epoch(&t.Epochs[i], func(_, _, _, words float64) { u.total += words })
	}
	for i := range t.Epochs {
		u.at = t.Epochs[i].At
		u.epoch(&t.Epochs[i], u.put)
	}
	in.sort()
	return in
}

func (in *Input) add(born, died uint64, words, count uint32) {
	in.Born, in.Died = append(in.Born, born), append(in.Died, died)
	in.Words, in.Count = append(in.Words, words), append(in.Count, count)
}

// death gives when an object dies that was proven alive at seen and found dead at dead.
func death(born, seen, dead uint64, how Deaths, c *lifetimes.Curve, rng *rand.Rand) uint64 {
	seen = max(seen, born)
	switch {
	case dead <= seen:
		return seen
	case how == Earliest:
		return seen + 1
	case how == Latest:
		return dead
	}
	age := c.Draw(float64(seen-born), float64(dead-born), rng.Float64())
	return min(dead, max(seen+1, born+uint64(age)))
}

// undated gives when an object dies that no collection found dead: its space was not collected since it was seen.
func undated(born, seen uint64, how Deaths, c *lifetimes.Curve, rng *rand.Rand) uint64 {
	switch how {
	case Earliest:
		return max(seen, born) + 1
	case Latest:
		return Never
	}
	from, to := float64(max(seen, born)-born), lifetimes.Edge(c.Reach+1)
	a, b := c.At(from), c.At(to)
	if to <= from || a <= 0 || rng.Float64() >= (a-b)/a {
		return Never
	}
	return born + uint64(c.Draw(from, to, rng.Float64()))
}

// births says where in an epoch objects were born that survived it, if only the epoch is known: those born late have
// had less time to die.
type births struct {
	span float64
	sum  [birthSteps + 1]float64
}

const birthSteps = 256

func birthsIn(c *lifetimes.Curve, span float64) *births {
	b := &births{span: span}
	for i := range birthSteps {
		b.sum[i+1] = b.sum[i] + max(1e-9, c.At((float64(i)+0.5)*span/birthSteps))
	}
	return b
}

// age gives the age, at the end of the epoch, of an object; u is from 0 to 1.
func (b *births) age(u float64) float64 {
	want := u * b.sum[birthSteps]
	i, _ := slices.BinarySearch(b.sum[:], want)
	i = min(max(i, 1), birthSteps)
	part := (want - b.sum[i-1]) / (b.sum[i] - b.sum[i-1])
	return (float64(i-1) + part) * b.span / birthSteps
}

// unseen makes objects for those of an epoch that died before its collection and were older than grain.
type unseen struct {
	in    *Input
	c     *lifetimes.Curve
	grain float64
	total float64 // words of all that will be made
	at    uint64  // the collection
	rng   *rand.Rand
}

// epoch calls f for each range of ages, at the collection, at which such objects were born, with their mean size and
// all their words.
func (u *unseen) epoch(e *lifetimes.Epoch, f func(from, to, mean, words float64)) {
	if e.UnseenWords == 0 || e.At == e.Begin {
		return
	}
	mean := 5.0
	if e.UnseenObjects > 0 {
		mean = max(2, float64(e.UnseenWords)/float64(e.UnseenObjects))
	}
	old, span := u.c.At(u.grain), float64(e.At-e.Begin)
	if e.Unseen != nil {
		for i, w := range e.Unseen {
			from, to := max(u.grain, lifetimes.Edge(i)), min(lifetimes.Edge(i+1), span)
			if w == 0 || to <= from {
				continue
			}
			alive := u.c.At((from + to) / 2)
			if alive < 1 {
				f(from, to, mean, float64(w)*max(0, old-alive)/(1-alive))
			}
		}
		return
	}
	for i := range birthSteps {
		from, to := max(u.grain, float64(i)*span/birthSteps), float64(i+1)*span/birthSteps
		if to > from {
			f(from, to, mean, (to-from)*max(0, old-u.c.At((from+to)/2)))
		}
	}
}

// put makes objects of words in all that were born at ages from from to to.
func (u *unseen) put(from, to, mean, words float64) {
	size := max(mean, min(u.total/made, 1<<12), u.total/made/mostMade)
	n := int(words / size)
	if u.rng.Float64() < words/size-float64(n) {
		n++
	}
	for range n {
		age := from + u.rng.Float64()*(to-from)
		life := u.c.Draw(u.grain, age, u.rng.Float64())
		born := u.at - min(u.at, uint64(age))
		u.in.add(born, min(u.at, born+uint64(life)), uint32(size), uint32(max(1, size/mean)))
	}
}

// sort puts the objects in the order of their births, those of before the recording first.
func (in *Input) sort() {
	order := make([]uint32, len(in.Born))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		switch x, y := in.Born[a], in.Born[b]; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return int(a) - int(b)
	})
	in.Born, in.Died = permuted(in.Born, order), permuted(in.Died, order)
	in.Words, in.Count = permuted(in.Words, order), permuted(in.Count, order)
	for in.Initial < len(in.Born) && in.Born[in.Initial] == 0 && in.before {
		in.Initial++
	}
}

func permuted[T any](v []T, order []uint32) []T {
	out := make([]T, len(order))
	for i, o := range order {
		out[i] = v[o]
	}
	return out
}
