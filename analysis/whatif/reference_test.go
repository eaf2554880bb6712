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
}

func (r *reference) used(space string) (words uint64) {
	for _, o := range r.objects {
		if o.space == space {
			words += o.words
		}
	}
	return words
}

// random traces are of objects side by side, so that eden holds nothing else.
func randomInput(t *rapid.T) *Input {
	in := &Input{}
	now := uint64(0)
	n := rapid.IntRange(0, 300).Draw(t, "objects")
	for range n {
		words := uint32(rapid.IntRange(2, 30).Draw(t, "words"))
		if rapid.IntRange(0, 40).Draw(t, "large") == 0 {
			words = uint32(rapid.IntRange(100, 400).Draw(t, "words"))
		}
		died := Never
		switch rapid.IntRange(0, 3).Draw(t, "fate") {
		case 0:
			died = now + rapid.Uint64Range(1, 4000).Draw(t, "life")
		case 1, 2:
			died = now + rapid.Uint64Range(1, 100).Draw(t, "life")
		default:
			if rapid.Bool().Draw(t, "mortal") {
				died = now + rapid.Uint64Range(1, 2000).Draw(t, "life")
			}
		}
		in.Born, in.Died, in.Words = append(in.Born, now), append(in.Died, died), append(in.Words, words)
		now += uint64(words)
	}
	in.End = now
	return in
}

func randomConfig(t *rapid.T) Config {
	return Config{Collector: rapid.SampledFrom([]uint64{trace.CollectorSerial, trace.CollectorParallel}).Draw(t, "gc"),
		Eden: rapid.Uint64Range(60, 600).Draw(t, "eden"), Survivor: rapid.Uint64Range(0, 5000).Draw(t, "survivor"),
		Old: rapid.Uint64Range(50, 4000).Draw(t, "old"), Threshold: rapid.IntRange(0, 15).Draw(t, "threshold")}
}

// run allocates one object after the other. It collects where one does not fit.
func (r *reference) run(in *Input) {
	r.s, r.threshold, r.exhausted = &simulator{in: in}, r.c.Threshold, Never
	for i := range in.Born {
		o := &object{id: i, born: in.Born[i], died: in.Died[i], words: uint64(in.Words[i]), space: "eden"}
		large := o.words > r.c.Eden
		if r.c.Collector == trace.CollectorParallel {
			large = o.words >= r.c.Eden/2
		}
		if large {
			o.space = "old"
			if r.used("old")+o.words > r.c.Old {
				r.fullAt(o.born)
				if r.exhausted == Never && r.used("old")+o.words > r.c.Old {
					r.exhausted = o.born
				}
			}
		} else if r.used("eden")+r.used("left")+o.words > r.c.Eden {
			if r.used("eden") > 0 || r.used("left") == 0 {
				r.collectAt(o.born)
			}
			if r.exhausted == Never && r.used("left")+o.words > r.c.Eden { // what is left leaves no room
				o.space = "old"
				if r.used("old")+o.words > r.c.Old {
					r.fullAt(o.born)
					if r.exhausted == Never && r.used("old")+o.words > r.c.Old {
						r.exhausted = o.born
					}
				}
			}
		}
		if r.exhausted != Never {
			return
		}
		r.objects = append(r.objects, o)
	}
	if r.used("eden")+r.used("left") == r.c.Eden && len(in.Born) > 0 {
		r.collectAt(in.End)
	}
}

// collectAt makes room in eden. In a trace without gaps it is called where an object does not fit.
func (r *reference) collectAt(now uint64) {
	free, young := r.c.Old-r.used("old"), r.used("eden")+r.used("survivor")
	expected := uint64(r.avg.padded)
	left := r.used("left") > 0
	if r.c.Collector == trace.CollectorParallel {
		if min(expected, young) >= free || left {
			r.fullAt(now)
			return
		}
		if !r.minorAt(now) || uint64(r.avg.padded) > r.c.Old-r.used("old") {
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
			}
		}
	}
	if r.used("left") > r.c.Eden-r.c.Eden/50 || r.used("old") > r.c.Old {
		r.exhausted = now
	}
}

// TestReference compares the simulator with a slow one on random traces.
func TestReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, c := randomInput(t), randomConfig(t)
		r := &reference{c: c}
		r.run(in)
		o := Simulate(in, c, 0)
		if o.Minor != r.minor || o.Full != r.full || o.Copied != r.copied || o.Promoted != r.promoted ||
			o.Exhausted != r.exhausted {
			t.Fatalf("%+v\nsimulated %d young, %d full, %d copied, %d promoted, exhausted at %d\n"+
				"reference %d, %d, %d, %d, %d", c, o.Minor, o.Full, o.Copied, o.Promoted, o.Exhausted,
				r.minor, r.full, r.copied, r.promoted, r.exhausted)
		}
	})
}
