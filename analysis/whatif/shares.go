package whatif

import (
	"math/rand/v2"

	"github.com/heapcam/heapcam/trace"
)

// shares are what collections find alive: one entry for each recorded young collection, or for each full one.
type shares struct {
	eden []float64             // of eden
	kept [maxSurvived]survival // of the survivors of each age, over all collections
	old  []float64             // of old space
}

const maxSurvived = 16

type survival struct{ before, after float64 }

// Probabilities replace what the recording says.
type Probabilities struct {
	Marked   float64 // share of eden that a young collection finds alive; negative: as recorded
	Survived float64 // share of survivors that the next collection finds alive; negative: as recorded
}

// shares reads the recording's own.
func (m *Model) shares(p Probabilities) *shares {
	s := &shares{}
	for i := range m.tape.Epochs {
		e := &m.tape.Epochs[i]
		switch {
		case e.Kind == trace.PauseYoung && e.Exact && e.At > e.Begin && i > 0:
			s.eden = append(s.eden, min(1, float64(e.FromEden)/float64(e.At-e.Begin)))
		case e.Kind == trace.PauseFull && e.OldBefore > 0:
			all := float64(e.OldBefore + e.EdenBefore + e.SurvivorBefore)
			s.old = append(s.old, min(1, float64(e.OldAfter+e.EdenAfter+e.SurvivorAfter)/all))
		}
	}
	t := m.tape
	for age := range maxSurvived {
		s.kept[age].after = float64(t.Kept[age] + t.Tenured[age])
		if age > 0 {
			s.kept[age].before = float64(t.Kept[age-1])
		}
	}
	if p.Marked >= 0 {
		s.eden = []float64{p.Marked}
	}
	if p.Survived >= 0 {
		for age := range s.kept {
			s.kept[age] = survival{1, p.Survived}
		}
	}
	return s
}

// survived is the share of survivors of an age that the next collection finds alive.
func (s *shares) survived(age int) float64 {
	k := s.kept[min(age, maxSurvived-1)]
	if k.before <= 0 {
		return 1
	}
	return min(1, k.after/k.before)
}

// simulateShares runs a heap by the rules of Simulate without objects: each collection finds a share of each space
// alive. It begins with so many words in old space. seed decides which of the recorded shares each collection has.
func simulateShares(s *shares, c Config, initial, end uint64, objectWords float64, seed uint64) *Outcome {
	rng := rand.New(rand.NewPCG(seed, 0x73686172))
	x := &massSimulator{s: s, c: c, rng: rng, old: float64(initial), limit: c.Threshold, object: objectWords,
		out: &Outcome{Exhausted: Never}}
	if x.old > float64(c.Old) {
		x.out.Exhausted = 0
		return x.out
	}
	for now := uint64(0); ; {
		now += c.Eden - min(c.Eden, uint64(x.left))
		if now > end || len(x.out.Steps) >= maxSteps {
			break
		}
		x.collect(now)
		x.out.OldMost = max(x.out.OldMost, uint64(x.old))
		if x.out.Exhausted != Never {
			break
		}
	}
	if x.out.LiveMost == 0 {
		x.out.LiveMost = uint64(x.old)
	}
	return x.out
}

// massSimulator is a simulation of simulateShares under way. Masses are in words.
type massSimulator struct {
	s         *shares
	c         Config
	rng       *rand.Rand
	out       *Outcome
	ages      [maxSurvived]float64 // in the survivor space
	old, left float64              // in old space; left in eden by a full collection
	limit     int
	object    float64 // words of an object that survives
	promoted  paddedAverage
}

func (x *massSimulator) draw(of []float64, none float64) float64 {
	if len(of) == 0 {
		return none
	}
	return of[x.rng.IntN(len(of))]
}

func (x *massSimulator) young() float64 {
	sum := float64(x.c.Eden)
	for _, w := range x.ages {
		sum += w
	}
	return sum
}

func (x *massSimulator) collect(now uint64) {
	free, expected := float64(x.c.Old)-x.old, x.promoted.padded
	unsafe := min(expected, x.young()) >= free
	if x.c.Collector != trace.CollectorParallel {
		unsafe = free < expected && free < x.young()
	}
	if unsafe || x.left > 0 {
		x.full(now)
		return
	}
	if fits := x.minor(now); !fits || x.c.Follow && x.promoted.padded > float64(x.c.Old)-x.old {
		x.full(now)
	}
}

func (x *massSimulator) minor(now uint64) bool {
	step := Step{At: now, Before: uint64(x.young() + x.old)}
	var live [maxSurvived + 1]float64 // by age
	live[0] = float64(x.c.Eden) * x.draw(x.s.eden, 0)
	for age := 1; age < maxSurvived; age++ {
		live[age] = x.ages[age] * x.s.survived(age)
	}
	stay, all := 0.0, 0.0
	for age, w := range live {
		all += w
		if age < x.limit {
			stay += w
		}
	}
	room := float64(x.c.Survivor)
	if x.c.Collector == trace.CollectorParallel {
		room = float64(x.c.Survivor / plab * plab)
	}
	part := 1.0 // of those below the threshold that stay young
	if stay > room {
		part = room / stay
	}
	x.ages = [maxSurvived]float64{}
	copied := 0.0
	for age := range min(x.limit, maxSurvived-1) {
		x.ages[age+1] = part * live[age]
		copied += part * live[age]
	}
	promoted := all - copied
	x.old += promoted
	x.promoted.sample(promoted)
	x.left = 0
	if x.c.Collector == trace.CollectorSerial {
		x.limit = x.adapt()
	}
	step.Copied, step.Promoted, step.Objects = uint64(copied), uint64(promoted), uint64(all/max(1, x.object))
	step.After = uint64(copied + x.old)
	x.out.Minor++
	x.out.Copied += step.Copied
	x.out.Promoted += step.Promoted
	x.out.Steps = append(x.out.Steps, step)
	return x.old <= float64(x.c.Old)
}

func (x *massSimulator) adapt() int {
	sum := 0.0
	for age := 1; age < maxSurvived; age++ {
		if sum += x.ages[age]; sum > float64(x.c.Survivor)/2 {
			return min(age, x.c.Threshold)
		}
	}
	return x.c.Threshold
}

func (x *massSimulator) full(now uint64) {
	used := x.young() + x.old
	live := used * x.draw(x.s.old, 1)
	x.ages = [maxSurvived]float64{}
	x.old = min(live, float64(x.c.Old))
	x.left = live - x.old
	step := Step{At: now, Full: true, Before: uint64(used), After: uint64(live), Live: uint64(live)}
	x.out.Full++
	x.out.LiveMost = max(x.out.LiveMost, step.Live)
	x.out.Steps = append(x.out.Steps, step)
	if x.left > float64(x.c.Eden-x.c.Eden/50) {
		x.out.Exhausted = now
	}
}
