package whatif

import (
	"github.com/heapcam/heapcam/trace"
)

// Never is the death of an object that does not die.
const Never = ^uint64(0)

// Input is what the simulator allocates: objects in the order of their births, in virtual time (words allocated). All
// that is allocated between them dies before it matters. The first Initial objects are in old space at the beginning.
type Input struct {
	Born, Died []uint64
	Words      []uint32
	Count      []uint32 // objects that an entry stands for; nil: one each
	Initial    int
	End        uint64 // virtual time at which the program ends

	before bool // what is born at 0 was there before
}

// Config is a heap of fixed sizes. Sizes are in words.
type Config struct {
	Collector           uint64 // trace.CollectorSerial, CollectorParallel or CollectorG1
	Eden, Survivor, Old uint64
	Threshold           int // collections that an object survives in young space, 0 to 15
	// Follow says that a full collection follows a young one if the next promotions are not expected to fit: Parallel
	// of JDKs before 17. Newer ones wait for the next failed allocation.
	Follow bool
	Regional
}

// Young is the size of the young generation in words.
func (c *Config) Young() uint64 { return c.Eden + 2*c.Survivor }

// Step is a simulated collection.
type Step struct {
	At               uint64 // virtual time
	Full             bool
	Before, After    uint64 // words in use, all spaces
	Copied, Promoted uint64 // words that a young collection copied to a survivor space, and to old space
	Objects          uint64 // that it copied to either
	Live             uint64 // words that a full collection kept
}

// Outcome is what a simulation gave.
type Outcome struct {
	Minor, Full      int
	Copied, Promoted uint64 // words
	OldMost          uint64 // words in old space, the most after a collection
	// LiveMost is the most words that a full collection kept, or what lives at the end if there was none.
	LiveMost uint64
	// Exhausted is the virtual time at which an allocation failed, Never if none did. The simulation ends there.
	Exhausted uint64
	Steps     []Step
}

// plab is the size of the buffers, in words, that Parallel copies survivors through. When a survivor space has no room
// for another, all smaller objects are promoted.
const plab = 4096

// simulator is one simulation under way.
type simulator struct {
	in   *Input
	c    Config
	seed uint64
	out  *Outcome

	survivors []young  // in the survivor space, and what a full collection had to leave in eden
	keep      []young  // scratch: the next survivors
	old       []uint32 // objects in old space
	oldUsed   uint64   // words, dead ones included
	fromUsed  uint64   // words in the survivor space
	left      uint64   // words that a full collection left in eden
	first     int      // of the objects in eden
	next      int      // the next object to allocate
	base      uint64   // virtual time at which eden was last emptied
	direct    uint64   // words that went directly to old space since
	limit     int      // the tenuring threshold in force
	promoted  paddedAverage
}

// young is an object in a survivor space.
type young struct {
	object uint32
	age    uint8
}

// Simulate runs in through a heap. seed decides which objects are promoted when a survivor space overflows.
func Simulate(in *Input, c Config, seed uint64) *Outcome {
	if c.regional() {
		return simulateG1(in, c, seed)
	}
	s := &simulator{in: in, c: c, seed: seed, out: &Outcome{Exhausted: Never}, limit: c.Threshold}
	for i := range in.Initial {
		s.old = append(s.old, uint32(i))
		s.oldUsed += uint64(in.Words[i])
	}
	s.first, s.next = in.Initial, in.Initial
	s.run()
	if s.out.LiveMost == 0 {
		s.out.LiveMost = s.liveAt(in.End)
	}
	s.out.OldMost = max(s.out.OldMost, s.oldUsed)
	return s.out
}

// liveAt gives the words of all objects that are in the heap and live at a time.
func (s *simulator) liveAt(now uint64) (words uint64) {
	for _, o := range s.old {
		if s.in.Died[o] > now {
			words += uint64(s.in.Words[o])
		}
	}
	for _, y := range s.survivors {
		if s.in.Died[y.object] > now {
			words += uint64(s.in.Words[y.object])
		}
	}
	return words
}

// run allocates until the program ends or the heap is exhausted.
func (s *simulator) run() {
	in := s.in
	if s.oldUsed > s.c.Old {
		s.out.Exhausted = 0
		return
	}
	for {
		full := s.edenFull()
		for s.next < len(in.Born) && in.Born[s.next] <= full {
			i := s.next
			words := uint64(in.Words[i])
			if s.tooLarge(words) {
				if !s.allocateOld(uint32(i)) {
					return
				}
				full = s.edenFull()
			} else if in.Born[i]+words > full {
				if in.Born[i] > s.base+s.direct {
					full = in.Born[i] // it does not fit any more
					break
				}
				// A full collection has just left too much in eden.
				if !s.allocateOld(uint32(i)) {
					return
				}
				s.first, full = i+1, s.edenFull()
			}
			s.next++
		}
		if full > in.End {
			return
		}
		if !s.collect(full) {
			return
		}
	}
}

// edenFull gives the time at which eden has no room left.
func (s *simulator) edenFull() uint64 { return s.base + s.direct + s.c.Eden - min(s.c.Eden, s.left) }

// tooLarge says whether an object of so many words goes directly to old space.
func (s *simulator) tooLarge(words uint64) bool {
	switch s.c.Collector {
	case trace.CollectorParallel:
		return words >= s.c.Eden/2
	case trace.CollectorG1:
		return words >= max(1, s.c.Region/2)
	}
	return words > s.c.Eden
}

// allocateOld puts a large object into old space; a full collection makes room. False: the heap is exhausted.
func (s *simulator) allocateOld(o uint32) bool {
	words, now := uint64(s.in.Words[o]), s.in.Born[o]
	if s.oldUsed+words > s.c.Old {
		s.full(now)
		if s.out.Exhausted == Never && s.oldUsed+words > s.c.Old {
			s.out.Exhausted = now
		}
		if s.out.Exhausted != Never {
			return false
		}
	}
	s.old = append(s.old, o)
	s.oldUsed += words
	s.direct += words
	return true
}

// collect makes room in eden at a time, and says whether there is any.
func (s *simulator) collect(now uint64) bool {
	switch s.c.Collector {
	case trace.CollectorParallel:
		s.collectParallel(now)
	default:
		s.collectSerial(now)
	}
	s.out.OldMost = max(s.out.OldMost, s.oldUsed)
	return s.out.Exhausted == Never
}

// collectParallel follows PSScavenge::invoke: a young collection is not attempted where its promotions, as they were
// recently, would not fit.
func (s *simulator) collectParallel(now uint64) {
	free := s.c.Old - s.oldUsed
	expected := uint64(s.promoted.padded)
	if min(expected, s.youngUsed(now)) >= free || s.left > 0 {
		s.full(now)
		return
	}
	if fits := s.minor(now); !fits || s.c.Follow && uint64(s.promoted.padded) > s.c.Old-s.oldUsed {
		s.full(now)
	}
}

// collectSerial follows DefNewGeneration::collection_attempt_is_safe.
func (s *simulator) collectSerial(now uint64) {
	free := s.c.Old - s.oldUsed
	if s.left > 0 || free < uint64(s.promoted.padded) && free < s.youngUsed(now) {
		s.full(now)
		return
	}
	if !s.minor(now) {
		s.full(now)
	}
}

// youngUsed gives the words in use in eden and the survivor space.
func (s *simulator) youngUsed(now uint64) uint64 {
	return s.left + s.fromUsed + now - min(now, s.base+s.direct)
}

// hash gives a number that looks random, of an object.
func (s *simulator) hash(o uint32) uint64 {
	x := (uint64(o) + 1 + s.seed<<32) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// minor is a young collection. It says false if what has to be promoted does not fit: then a full one must follow.
func (s *simulator) minor(now uint64) bool {
	in, limit := s.in, uint8(s.limit)
	step := Step{At: now, Before: s.youngUsed(now) + s.oldUsed}
	keep, stay := s.keep[:0], uint64(0)
	for _, y := range s.survivors {
		if in.Died[y.object] > now {
			keep = append(keep, y)
			if y.age < limit {
				stay += uint64(in.Words[y.object])
			}
		}
	}
	died := in.Died[s.first:s.next]
	for i, d := range died {
		if d > now {
			o := uint32(s.first + i)
			words := uint64(in.Words[o])
			if s.tooLarge(words) {
				continue
			}
			keep = append(keep, young{o, 0})
			if limit > 0 {
				stay += words
			}
		}
	}
	room := s.c.Survivor
	if s.c.Collector == trace.CollectorParallel {
		room -= room % plab
	}
	chosen := ^uint64(0) // of the hashes that stay young
	if stay > room {
		chosen = uint64(float64(1<<63) / float64(stay) * float64(room) * 2)
	}
	next, used := keep[:0], uint64(0)
	var ages [17]uint64
	for _, y := range keep {
		words := uint64(in.Words[y.object])
		if step.Objects++; in.Count != nil {
			step.Objects += uint64(in.Count[y.object]) - 1
		}
		if y.age < limit && used+words <= s.c.Survivor && (stay <= room || s.hash(y.object) < chosen) {
			y.age++
			ages[y.age] += words
			used += words
			next = append(next, y)
			continue
		}
		s.old = append(s.old, y.object)
		step.Promoted += words
	}
	step.Copied = used
	s.keep, s.survivors = s.survivors, next
	s.fromUsed, s.left = used, 0
	s.base, s.direct, s.first = now, 0, s.next
	s.oldUsed += step.Promoted
	s.promoted.sample(float64(step.Promoted))
	if s.c.Collector != trace.CollectorParallel {
		s.limit = s.adapt(&ages)
	}
	step.After = s.fromUsed + s.oldUsed
	s.out.Minor++
	s.out.Copied += used
	s.out.Promoted += step.Promoted
	s.out.Steps = append(s.out.Steps, step)
	return s.oldUsed <= s.c.Old
}

// adapt gives the threshold of Serial's next young collection: the age up to which survivors fill half of their space.
func (s *simulator) adapt(ages *[17]uint64) int {
	sum := uint64(0)
	for age := 1; age < 16; age++ {
		if sum += ages[age]; sum > s.c.Survivor/2 {
			return min(age, s.c.Threshold)
		}
	}
	return s.c.Threshold
}

// full is a full collection: what lives is moved into old space; what does not fit there stays in young space.
func (s *simulator) full(now uint64) {
	in := s.in
	step := Step{At: now, Full: true, Before: s.youngUsed(now) + s.oldUsed}
	live := s.old[:0]
	used := uint64(0)
	for _, o := range s.old {
		if in.Died[o] > now {
			live = append(live, o)
			used += uint64(in.Words[o])
		}
	}
	next, left := s.keep[:0], uint64(0)
	place := func(y young) {
		if in.Died[y.object] <= now {
			return
		}
		words := uint64(in.Words[y.object])
		if used+words <= s.c.Old {
			used += words
			live = append(live, y.object)
			return
		}
		left += words
		next = append(next, y)
	}
	for _, y := range s.survivors {
		place(y)
	}
	for o := s.first; o < s.next; o++ {
		if !s.tooLarge(uint64(in.Words[o])) {
			place(young{uint32(o), 0})
		}
	}
	s.keep, s.survivors = s.survivors, next
	s.old, s.oldUsed = live, used
	s.base, s.direct, s.first, s.fromUsed, s.left = now, 0, s.next, 0, left
	step.Live, step.After = used+left, used+left
	s.out.Full++
	s.out.LiveMost = max(s.out.LiveMost, step.Live)
	s.out.Steps = append(s.out.Steps, step)
	if left > s.c.Eden-s.c.Eden/50 || used > s.c.Old {
		s.out.Exhausted = now
	}
}
