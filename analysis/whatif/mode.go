package whatif

import (
	"math"
	"math/rand/v2"

	"github.com/heapcam/heapcam/analysis/lifetimes"
)

// Mode says how much of a recording the input of the simulator has: the inputs that ICPE'14 compares.
type Mode string

// Modes, from the most to the least that they know.
const (
	ModeObserved      Mode = "observed"      // each object with its own birth, size and death
	ModeLifetimes     Mode = "lifetimes"     // each object with its size and lifetime; births in any order
	ModeGenerated     Mode = "generated"     // objects drawn from the lifetime distribution of each size
	ModeProbabilities Mode = "probabilities" // no objects: which share of a space each collection finds alive
)

// Modes are all modes.
var Modes = []Mode{ModeObserved, ModeLifetimes, ModeGenerated, ModeProbabilities}

// shuffled forgets when in the recording objects were born: each keeps its size and its lifetime. Objects of which no
// death is known keep their birth.
func shuffled(in *Input, seed uint64) *Input {
	rng := rand.New(rand.NewPCG(seed, 0x73687566))
	out := &Input{Words: in.Words, Count: in.Count, End: in.End, before: in.before}
	out.Born, out.Died = make([]uint64, len(in.Born)), make([]uint64, len(in.Born))
	for i, born := range in.Born {
		died := in.Died[i]
		if i >= in.Initial && died != Never && in.End > 0 {
			life := died - born
			born = rng.Uint64N(in.End) + 1
			died = min(born+life, Never-1)
		}
		out.Born[i], out.Died[i] = born, died
	}
	out.sort()
	return out
}

// generated draws objects from the distribution of sizes, and for each size from its lifetimes. Those that die younger
// than grain words are left out. What was there before the recording stays.
func (m *Model) generated(grain, seed uint64) *Input {
	rng := rand.New(rand.NewPCG(seed, 0x67656e65))
	t := m.tape
	in := &Input{End: t.End() + t.Tail}
	for i := range t.Words {
		if t.Unknown[i] {
			in.before = true
			in.add(0, undated(0, t.Seen[i], Drawn, m.curve, rng), t.Words[i], 1)
		}
	}
	total, weights, curves := 0.0, [len(t.Size)]float64{}, m.bySize()
	for i := range t.Size {
		if weights[i] = t.Size[i].Weight(); weights[i] > 0 {
			total += weights[i]
		}
	}
	if total == 0 || in.End == 0 {
		in.sort()
		return in
	}
	scale := float64(in.End) / total // the sizes are known of a part of what was allocated
	kept := 0.0
	for i, w := range weights {
		if w > 0 {
			kept += scale * w * curves[i].At(float64(grain))
		}
	}
	for i, w := range weights {
		if w == 0 {
			continue
		}
		c := curves[i]
		size := 1.4 * math.Exp2(float64(i)) // most sizes of a class are in its lower half
		entry := max(size, min(kept/made, 1<<12), kept/made/mostMade)
		n := scale * w * c.At(float64(grain)) / entry
		count := int(n)
		if rng.Float64() < n-float64(count) {
			count++
		}
		reach := lifetimes.Edge(c.Reach + 1)
		beyond := c.At(reach) / max(1e-12, c.At(float64(grain)))
		for range count {
			born := rng.Uint64N(in.End) + 1
			died := Never
			if rng.Float64() >= beyond {
				died = born + uint64(c.Draw(float64(grain), reach, rng.Float64()))
			}
			in.add(born, died, uint32(min(entry, 1<<31)), uint32(max(1, entry/size)))
		}
	}
	in.sort()
	return in
}

// bySize gives a curve for each size. Sizes of few objects have that of all.
func (m *Model) bySize() (curves [33]*lifetimes.Curve) {
	for i := range m.tape.Size {
		g := &m.tape.Size[i]
		curves[i] = m.curve
		if g.Weight() > 1<<16 {
			curves[i] = g.Curve()
		}
	}
	return curves
}
