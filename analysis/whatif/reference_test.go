package whatif

import (
	"testing"

	"github.com/heapcam/heapcam/trace"
	"pgregory.net/rapid"
)

// object is an object of the reference.
type object struct {
	id         int
	born, died uint64
	words      uint64
	age        int
	space      string // eden, survivor, old, gone, or left: in eden by a full collection
	moved      uint64 // 1 + the time at which a collection put it where it is
}

// reference is a slow simulator with one Go value an object, which steps through virtual time a word at a time. It is
// written from the rules alone: docs/design has them.
type reference struct {
	c         Config
	objects   []*object
	s         *simulator // for which objects an overflow promotes
	minor     int
	full      int
	copied    uint64
	promoted  uint64
	avg       paddedAverage
	threshold int
	exhausted uint64
	between   uint64 // words in eden that belong to no object of the trace
	// How often a rule was used.
	overflows, reserves, failures, lefts, direct, follows int
}

func (r *reference) used(space string) (words uint64) {
	for _, o := range r.objects {
		if o.space == space {
			words += o.words
		}
	}
	return words
}

// randomInput draws a trace: objects, gaps between them for what dies at once, and objects from before the recording.
func randomInput(t *rapid.T) *Input {
	in := &Input{}
	now := uint64(0)
	scale := rapid.SampledFrom([]uint64{1, 1, 40}).Draw(t, "scale") // survivor spaces have steps of plab
	for range rapid.IntRange(0, 5).Draw(t, "initial") {
		in.Born, in.Died = append(in.Born, 0), append(in.Died, rapid.Uint64Range(1, 4000*scale).Draw(t, "life"))
		in.Words = append(in.Words, uint32(scale)*uint32(rapid.IntRange(2, 60).Draw(t, "words")))
		in.Initial++
	}
	for range rapid.IntRange(0, 300).Draw(t, "objects") {
		if rapid.IntRange(0, 5).Draw(t, "gap") == 0 {
			now += rapid.Uint64Range(1, 60*scale).Draw(t, "words")
		}
		words := uint32(scale) * uint32(rapid.IntRange(2, 30).Draw(t, "words"))
		if rapid.IntRange(0, 40).Draw(t, "large") == 0 {
			words = uint32(scale) * uint32(rapid.IntRange(100, 400).Draw(t, "words"))
		}
		died := Never
		switch rapid.IntRange(0, 3).Draw(t, "fate") {
		case 0:
			died = now + rapid.Uint64Range(1, 4000*scale).Draw(t, "life")
		case 1, 2:
			died = now + rapid.Uint64Range(1, 100*scale).Draw(t, "life")
		default:
			if rapid.Bool().Draw(t, "mortal") {
				died = now + rapid.Uint64Range(1, 2000*scale).Draw(t, "life")
			}
		}
		in.Born, in.Died, in.Words = append(in.Born, now), append(in.Died, died), append(in.Words, words)
		now += uint64(words)
	}
	in.End = now + rapid.Uint64Range(0, 100*scale).Draw(t, "tail")
	return in
}

func randomConfig(t *rapid.T) Config {
	scale := rapid.SampledFrom([]uint64{1, 1, 40}).Draw(t, "scale")
	survivor := rapid.SampledFrom([]uint64{0, plab - 1, plab, 2 * plab}).Draw(t, "survivor")
	if rapid.Bool().Draw(t, "any") {
		survivor = rapid.Uint64Range(0, 100*scale).Draw(t, "survivor")
	}
	return Config{Collector: rapid.SampledFrom([]uint64{trace.CollectorSerial, trace.CollectorParallel}).Draw(t, "gc"),
		Eden: rapid.Uint64Range(60, 600).Draw(t, "eden") * scale, Survivor: survivor,
		Old:       rapid.Uint64Range(50, 4000).Draw(t, "old") * scale,
		Threshold: rapid.SampledFrom([]int{0, 1, 2, 4, 15}).Draw(t, "threshold"),
		Follow:    rapid.Bool().Draw(t, "follow")}
}

// run allocates one object after the other, and what is between them. It collects where one does not fit, and where
// there is no room for the next word.
func (r *reference) run(in *Input) {
	r.s, r.threshold, r.exhausted = &simulator{in: in}, r.c.Threshold, Never
	for i := range in.Initial {
		r.objects = append(r.objects, &object{id: i, died: in.Died[i], words: uint64(in.Words[i]), space: "old"})
	}
	if r.used("old") > r.c.Old {
		r.exhausted = 0
		return
	}
	now := uint64(0)
	for i := in.Initial; i < len(in.Born); i++ {
		for ; now < in.Born[i]; now++ {
			if r.fill(now); r.exhausted != Never {
				return
			}
		}
		o := &object{id: i, born: in.Born[i], died: in.Died[i], words: uint64(in.Words[i]), space: "eden"}
		if r.allocate(o); r.exhausted != Never {
			return
		}
		r.objects = append(r.objects, o)
		now += o.words
	}
	for ; now < in.End; now++ {
		if r.fill(now); r.exhausted != Never {
			return
		}
	}
	if r.inEden() == r.c.Eden {
		r.collectAt(in.End)
	}
}

// inEden gives the words of eden that are used, by objects and by what is between them.
func (r *reference) inEden() uint64 { return r.used("eden") + r.used("left") + r.between }

// fill allocates a word that nobody keeps.
func (r *reference) fill(now uint64) {
	if r.inEden() == r.c.Eden {
		r.collectAt(now)
	}
	r.between++
}

// allocate finds room for an object.
func (r *reference) allocate(o *object) {
	large := o.words > r.c.Eden
	if r.c.Collector == trace.CollectorParallel {
		large = o.words >= r.c.Eden/2
	}
	if !large && r.inEden()+o.words > r.c.Eden {
		if r.inEden() > r.used("left") || r.used("left") == 0 {
			r.collectAt(o.born)
		}
		large = r.exhausted == Never && r.inEden()+o.words > r.c.Eden // what is left leaves no room
	}
	if !large || r.exhausted != Never {
		return
	}
	o.space = "old"
	r.direct++
	if r.used("old")+o.words > r.c.Old {
		r.fullAt(o.born)
		if r.exhausted == Never && r.used("old")+o.words > r.c.Old {
			r.exhausted = o.born
		}
	}
}

// collectAt makes room in eden. In a trace without gaps it is called where an object does not fit.
func (r *reference) collectAt(now uint64) {
	free, young := r.c.Old-r.used("old"), r.inEden()+r.used("survivor")
	expected := uint64(r.avg.padded)
	left := r.used("left") > 0
	if r.c.Collector == trace.CollectorParallel {
		if min(expected, young) >= free || left {
			r.reserves++
			r.fullAt(now)
			return
		}
		if !r.minorAt(now) {
			r.failures++
			r.fullAt(now)
		} else if r.c.Follow && uint64(r.avg.padded) > r.c.Old-r.used("old") {
			r.follows++
			r.fullAt(now)
		}
		return
	}
	if left || free < expected && free < young || !r.minorAt(now) {
		r.fullAt(now)
	}
}

// minorAt copies what lives in young space: to the other survivor space below the threshold, if there is room, else to
// old space.
func (r *reference) minorAt(now uint64) (fits bool) {
	r.minor++
	r.between = 0
	stay, room := uint64(0), r.c.Survivor
	if r.c.Collector == trace.CollectorParallel {
		room = room / plab * plab
	}
	for _, o := range r.objects {
		if o.died > now && (o.space == "eden" || o.space == "survivor") && o.age < r.threshold {
			stay += o.words
		}
	}
	chosen := ^uint64(0)
	if stay > room {
		r.overflows++
		chosen = uint64(float64(1<<63) / float64(stay) * float64(room) * 2)
	}
	to, promoted, ages := uint64(0), uint64(0), map[int]uint64{}
	for _, from := range []string{"survivor", "eden"} {
		for _, o := range r.objects {
			switch {
			case o.space != from || o.moved == now+1:
			case o.died <= now:
				o.space = "gone"
			case o.age < r.threshold && to+o.words <= r.c.Survivor && (stay <= room || r.s.hash(uint32(o.id)) < chosen):
				o.age++
				ages[o.age] += o.words
				to += o.words
				o.space, o.moved = "survivor", now+1
			default:
				o.space = "old"
				promoted += o.words
			}
		}
	}
	r.copied += to
	r.promoted += promoted
	r.avg.sample(float64(promoted))
	if r.c.Collector == trace.CollectorSerial {
		r.threshold = r.c.Threshold
		sum := uint64(0)
		for age := 1; age < 16; age++ {
			if sum += ages[age]; sum > r.c.Survivor/2 {
				r.threshold = min(age, r.c.Threshold)
				break
			}
		}
	}
	return r.used("old") <= r.c.Old
}

// fullAt drops what is dead and moves what lives into old space as long as it fits.
func (r *reference) fullAt(now uint64) {
	r.full++
	r.between = 0
	for _, o := range r.objects {
		if o.died <= now {
			o.space = "gone"
		}
	}
	placed := map[*object]bool{}
	for _, from := range []string{"survivor", "left", "eden"} {
		for _, o := range r.objects {
			if o.space != from || placed[o] {
				continue
			}
			placed[o] = true
			if r.used("old")+o.words <= r.c.Old {
				o.space = "old"
			} else {
				o.space = "left"
				r.lefts++
			}
		}
	}
	if r.used("left") > r.c.Eden-r.c.Eden/50 || r.used("old") > r.c.Old {
		r.exhausted = now
	}
}

// situation is a trace and a heap.
type situation struct {
	in *Input
	c  Config
}

// compare runs a situation through both simulators.
func (x *situation) compare(t interface{ Fatalf(string, ...any) }) *reference {
	r := &reference{c: x.c}
	r.run(x.in)
	o := Simulate(x.in, x.c, 0)
	if o.Minor != r.minor || o.Full != r.full || o.Copied != r.copied || o.Promoted != r.promoted ||
		o.Exhausted != r.exhausted {
		t.Fatalf("%+v\nsimulated %d young, %d full, %d copied, %d promoted, exhausted at %d\n"+
			"reference %d, %d, %d, %d, %d", x.c, o.Minor, o.Full, o.Copied, o.Promoted, o.Exhausted,
			r.minor, r.full, r.copied, r.promoted, r.exhausted)
	}
	return r
}

// TestReference compares the simulator with a slow one on random traces.
func TestReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := situation{randomInput(t), randomConfig(t)}
		x.compare(t)
	})
}

// TestRules: among the random traces each rule of the simulator is used.
func TestRules(t *testing.T) {
	used := map[string]int{}
	random := rapid.Custom(func(t *rapid.T) situation { return situation{randomInput(t), randomConfig(t)} })
	for seed := range 600 {
		x := random.Example(seed)
		r := x.compare(t)
		for rule, n := range map[string]int{"overflow": r.overflows, "reserve": r.reserves, "failure": r.failures,
			"left in eden": r.lefts, "direct": r.direct, "follows": r.follows} {
			used[rule] += n
		}
	}
	for rule, n := range used {
		if n == 0 {
			t.Errorf("no trace has the rule %q", rule)
		}
	}
}
