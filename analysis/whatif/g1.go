package whatif

import (
	"cmp"
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// Regional is what a heap of G1 has beyond its sizes: an approximation, because G1 decides by times that no simulation
// of objects knows.
type Regional struct {
	Region uint64 // words of a region; 0: the heap has none
	Least  uint64 // smallest eden in words; Config.Eden is the largest
	// IHOP is the share of the heap that old and humongous regions take when a cycle of marking begins.
	IHOP float64
	// Goal is how long a young collection may take, in seconds, as far as eden's size decides it. It is predicted as
	// Fixed and PerWord for each word that is copied.
	Goal, Fixed, PerWord float64
}

// What HotSpot takes for these, unless flags say otherwise.
const (
	g1IHOP      = 0.45
	g1Goal      = 0.2  // MaxGCPauseMillis
	g1Least     = 0.05 // G1NewSizePercent
	g1Most      = 0.6  // G1MaxNewSizePercent
	g1Reserve   = 0.1  // G1ReservePercent
	g1Waste     = 0.05 // G1HeapWastePercent
	g1Live      = 0.85 // G1MixedGCLiveThresholdPercent
	g1Count     = 8    // G1MixedGCCountTarget
	g1Survivors = 8    // SurvivorRatio
	g1Regions   = 2048 // that a heap is divided into, about
)

// heap is all words of a heap.
func (c *Config) heap() uint64 { return c.Young() + c.Old }

// region is an old region.
type region struct {
	objects []uint32
	used    uint64 // words, dead ones included
}

// g1 is a simulation of G1 under way. The collection of eden and survivors is that of simulator; its old space is kept
// in regions here.
type g1 struct {
	simulator
	most, all  uint64    // largest eden, and all words of the heap
	regions    []*region // the last one is being filled
	big        []uint32  // humongous objects
	bigRegions uint64
	rate       float64   // share of eden that collections copied recently
	marking    int       // collections until marking ends; 0: it is not under way
	start      uint64    // virtual time at which it began
	candidates []*region // to collect in mixed collections, those with most garbage first
	each       int       // of these in one collection
}

func simulateG1(in *Input, c Config, seed uint64) *Outcome {
	c.Region = max(1, min(c.Region, c.heap()))
	c.Least = max(c.Region, min(c.Least, c.Eden))
	s := &g1{simulator: simulator{in: in, c: c, seed: seed, out: &Outcome{Exhausted: Never}, limit: c.Threshold}}
	s.most, s.all = c.Eden, c.heap()
	s.first, s.next = in.Initial, in.Initial
	for i := range in.Initial {
		s.old = append(s.old, uint32(i))
	}
	s.place()
	if s.used() > c.heap() {
		s.out.Exhausted = 0
		return s.out
	}
	s.resize()
	s.run()
	if s.out.LiveMost == 0 {
		for _, r := range s.regions {
			s.old = append(s.old, r.objects...)
		}
		s.old = append(s.old, s.big...)
		s.out.LiveMost = s.liveAt(in.End)
	}
	return s.out
}

// run allocates until the program ends or the heap is exhausted.
func (s *g1) run() {
	in := s.in
	for {
		full := s.edenFull()
		for s.next < len(in.Born) && in.Born[s.next] <= full {
			i := s.next
			words := uint64(in.Words[i])
			if s.tooLarge(words) {
				if !s.allocateBig(uint32(i)) {
					return
				}
				full = s.edenFull()
			} else if in.Born[i]+words > full && in.Born[i] > s.base+s.direct {
				full = in.Born[i] // it does not fit any more
				break
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

// bigOf is how many regions a humongous object takes.
func (s *g1) bigOf(o uint32) uint64 { return (uint64(s.in.Words[o]) + s.c.Region - 1) / s.c.Region }

// used is the words of all regions that are not free, without eden.
func (s *g1) used() uint64 {
	return (uint64(len(s.regions))+s.bigRegions)*s.c.Region + (s.fromUsed+s.c.Region-1)/s.c.Region*s.c.Region
}

// free is the words of free regions, without those of eden.
func (s *g1) free() uint64 { return s.all - min(s.all, s.used()) }

// allocateBig puts a humongous object into regions of its own. False: the heap is exhausted.
func (s *g1) allocateBig(o uint32) bool {
	now, words := s.in.Born[o], s.bigOf(o)*s.c.Region
	fits := func() bool { return s.used()+words+s.edenUsed(now) <= s.all }
	if !fits() {
		s.minorG1(now)
		if !fits() {
			s.fullG1(now)
		}
		if s.out.Exhausted == Never && !fits() {
			s.out.Exhausted = now
		}
		if s.out.Exhausted != Never {
			return false
		}
		s.resize()
	}
	s.big = append(s.big, o)
	s.bigRegions += s.bigOf(o)
	s.oldUsed += uint64(s.in.Words[o])
	s.direct += uint64(s.in.Words[o])
	return true
}

// edenUsed gives the words in use in eden.
func (s *g1) edenUsed(now uint64) uint64 { return now - min(now, s.base+s.direct) }

// collect makes room in eden, and says whether there is any.
func (s *g1) collect(now uint64) bool {
	s.minorG1(now)
	if s.used()+2*s.c.Region > s.all { // there is no room to copy to, or to allocate in
		s.fullG1(now)
	}
	s.out.OldMost = max(s.out.OldMost, s.oldUsed)
	s.resize()
	return s.out.Exhausted == Never
}

// minorG1 is a young collection; it takes old regions with it after marking, and begins and ends marking.
func (s *g1) minorG1(now uint64) {
	eden := s.edenUsed(now)
	s.c.Survivor = (eden+s.fromUsed)/g1Survivors/s.c.Region*s.c.Region + s.c.Region
	s.minor(now)
	step := &s.out.Steps[len(s.out.Steps)-1]
	if eden > 0 {
		s.rate = 0.7*s.rate + 0.3*float64(step.Copied+step.Promoted)/float64(eden)
	}
	s.place()
	s.reclaim(now)
	s.mixed(now, step)
	step.After = s.fromUsed + s.oldUsed
	switch {
	case s.marking > 1:
		s.marking--
	case s.marking == 1:
		s.marking = 0
		s.remark()
	case len(s.candidates) == 0 &&
		float64((uint64(len(s.regions))+s.bigRegions)*s.c.Region) >= s.c.IHOP*float64(s.all):
		s.marking, s.start = 2, now
	}
}

// place moves what was promoted from the old space of simulator into regions.
func (s *g1) place() {
	for _, o := range s.old {
		words := uint64(s.in.Words[o])
		if s.tooLarge(words) {
			s.big = append(s.big, o)
			s.bigRegions += s.bigOf(o)
			continue
		}
		n := len(s.regions)
		if n == 0 || s.regions[n-1].used+words > s.c.Region {
			s.regions = append(s.regions, &region{})
			n++
		}
		r := s.regions[n-1]
		r.objects, r.used = append(r.objects, o), r.used+words
	}
	s.old = s.old[:0]
	s.sum()
}

// sum counts the words in old and humongous regions.
func (s *g1) sum() {
	s.oldUsed = 0
	for _, r := range s.regions {
		s.oldUsed += r.used
	}
	for _, o := range s.big {
		s.oldUsed += uint64(s.in.Words[o])
	}
}

// reclaim frees humongous objects that are dead: G1 finds them in young collections.
func (s *g1) reclaim(now uint64) {
	kept := s.big[:0]
	s.bigRegions = 0
	for _, o := range s.big {
		if s.in.Died[o] > now {
			kept = append(kept, o)
			s.bigRegions += s.bigOf(o)
		}
	}
	s.big = kept
	s.sum()
}

// live gives the words of a region's objects that live at a time.
func (s *g1) live(r *region, at uint64) (words uint64) {
	for _, o := range r.objects {
		if s.in.Died[o] > at {
			words += uint64(s.in.Words[o])
		}
	}
	return words
}

// remark ends marking: regions without a live object are freed, and those worth it become candidates.
func (s *g1) remark() {
	all, kept := s.fromUsed, s.regions[:0]
	for _, r := range s.regions {
		if n := s.live(r, s.start); n > 0 {
			kept = append(kept, r)
			all += n
		}
	}
	s.regions = kept
	for _, o := range s.big {
		all += uint64(s.in.Words[o])
	}
	s.out.LiveMost = max(s.out.LiveMost, all)
	type garbage struct {
		region *region
		words  uint64
	}
	var found []garbage
	sum := uint64(0)
	for _, r := range s.regions[:max(0, len(s.regions)-1)] {
		n := s.live(r, s.start)
		if float64(n) <= g1Live*float64(s.c.Region) {
			found = append(found, garbage{r, s.c.Region - n})
			sum += s.c.Region - n
		}
	}
	slices.SortStableFunc(found, func(a, b garbage) int { return cmp.Compare(b.words, a.words) })
	for _, g := range found {
		if float64(sum) <= g1Waste*float64(s.all) {
			break
		}
		s.candidates = append(s.candidates, g.region)
		sum -= g.words
	}
	s.each = (len(s.candidates) + g1Count - 1) / g1Count
	s.sum()
}

// mixed empties some of the candidates: what lives in them is copied to other old regions.
func (s *g1) mixed(now uint64, step *Step) {
	n := min(s.each, len(s.candidates))
	if n == 0 {
		return
	}
	for _, r := range s.candidates[:n] {
		for _, o := range r.objects {
			if s.in.Died[o] > now {
				s.old = append(s.old, o)
				step.Copied += uint64(s.in.Words[o])
				step.Objects++
			}
		}
		r.objects = nil
	}
	s.regions = slices.DeleteFunc(s.regions, func(r *region) bool { return len(r.objects) == 0 })
	s.candidates = s.candidates[n:]
	s.place()
}

// fullG1 is a full collection: what lives is moved together in old regions.
func (s *g1) fullG1(now uint64) {
	step := Step{At: now, Full: true, Before: s.youngUsed(now) + s.oldUsed}
	alive := func(o uint32) bool { return s.in.Died[o] > now }
	regions := s.regions
	s.regions, s.candidates, s.marking = nil, nil, 0
	for _, r := range regions {
		for _, o := range r.objects {
			if alive(o) {
				s.old = append(s.old, o)
			}
		}
	}
	for _, y := range s.survivors {
		if alive(y.object) {
			s.old = append(s.old, y.object)
		}
	}
	for o := s.first; o < s.next; o++ {
		if alive(uint32(o)) && !s.tooLarge(uint64(s.in.Words[o])) {
			s.old = append(s.old, uint32(o))
		}
	}
	s.survivors = s.survivors[:0]
	s.base, s.direct, s.first, s.fromUsed = now, 0, s.next, 0
	s.place()
	s.reclaim(now)
	step.Live, step.After = s.oldUsed, s.oldUsed
	s.out.Full++
	s.out.LiveMost = max(s.out.LiveMost, step.Live)
	s.out.Steps = append(s.out.Steps, step)
	if s.used()+s.c.Region > s.all {
		s.out.Exhausted = now
	}
}

// resize gives eden the size that the goal for pauses allows, between its bounds, and leaves a reserve.
func (s *g1) resize() {
	want := float64(s.most)
	if cost := s.c.PerWord * s.rate; cost > 0 {
		want = min(want, max(0, s.c.Goal-s.c.Fixed)/cost)
	}
	free := s.free() - min(s.free(), uint64(g1Reserve*float64(s.all)))
	eden := max(s.c.Least, min(uint64(want), free))
	s.c.Eden = max(s.c.Region, min(eden, s.free())/s.c.Region*s.c.Region)
}

// regional says whether a configuration is one of G1.
func (c *Config) regional() bool { return c.Collector == trace.CollectorG1 }
