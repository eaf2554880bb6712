package leak

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/heap"
)

// simulated makes the history of a site, sample by sample: births by chance at a rate that changes with the time from 0
// to 1, each living for ever or for a time.
type simulated struct {
	name string
	leak bool
	// births gives the rate at a time, in units of its mean; life how long an object that is born then lives, in
	// windows: infinity for ever.
	births func(t float64) float64
	life   func(t float64) float64
}

// shapes are the histories that programs have. u, v are random numbers that vary them.
func shapes(u, v float64) []simulated {
	ever := func(float64) float64 { return math.Inf(1) }
	steady := func(float64) float64 { return 1 }
	cycles := 2 + math.Floor(4*v)
	day := func(t float64) float64 { return 1 + 0.9*math.Sin(2*math.Pi*(cycles*t+u)) }
	until := func(end float64) func(float64) float64 {
		return func(t float64) float64 {
			if t < end {
				return 1 / end
			}
			return 0
		}
	}
	return []simulated{
		{"ramp", true, steady, ever},
		{"ramp with a daily load", true, day, ever},
		{"ramp with idle phases", true, func(t float64) float64 {
			if math.Mod(t*(3+math.Floor(5*u)), 1) < 0.5 {
				return 2
			}
			return 0
		}, ever},
		{"ramp beside turnover", true, steady, func(t float64) float64 {
			if math.Mod(t*1e6, 1) < 0.5 {
				return math.Inf(1)
			}
			return 0.05 + 0.1*u
		}},
		{"plateau", false, until(0.02 + 0.1*u), ever},
		{"ramp and plateau", false, until(0.1 + 0.45*u), ever},
		{"saw", false, steady, func(t float64) float64 { // all that there is goes at once
			period := 0.1 + 0.15*u
			return period - math.Mod(t+v, period)
		}},
		{"equilibrium", false, steady, func(t float64) float64 {
			return -math.Log(1-math.Mod(t*1e7, 1)) * (0.02 + 0.08*u)
		}},
		{"cache that is full", false, steady, func(float64) float64 { return 0.1 + 0.15*u }},
		{"sessions with a daily load", false, day, func(float64) float64 { return 0.02 + 0.05*u }},
	}
}

// TestCalibration compares what verdicts say of themselves with the truth, in simulated windows of one site each beside
// others in equilibrium: of leaks that are named with a confidence of at least 0.99 at most one of a hundred is wrong.
// Windows last 20 s, a minute, or three weeks.
func TestCalibration(t *testing.T) {
	histories := 1000
	if os.Getenv("HEAPCAM_FULL") != "" {
		histories = 10000
	}
	if testing.Short() {
		histories = 300
	}
	rng := rand.New(rand.NewPCG(19, 2026))
	type count struct{ all, named, suspected float64 }
	by := map[string]*count{}
	windows := []float64{60, 20, 21 * 24 * 3600} // s
	var right, wrong [2]float64                  // leaks, suspects
	for i := range histories {
		all := shapes(rng.Float64(), rng.Float64())
		x, window := all[i%len(all)], windows[i/len(all)%len(windows)]
		n := 8 + int(150*rng.Float64()*rng.Float64())
		floors := 0
		if rng.Float64() < 0.7 {
			floors = 2 + rng.IntN(n/2)
		}
		h := NewDetector()
		for k := range n {
			h.Times = append(h.Times, float64(k+1)*window/float64(n))
		}
		h.To = window
		h.floor(floors)
		if floors == 0 {
			h.Floors = nil
			at := []int32{0, int32(n / 4), int32(n / 2), int32(n - 1)}
			h.arrays[1] = &lengths{most: []uint64{20, 40, 80, 160}, at: at}
		}
		h.Sites[key(1)] = x.series(h, rng, 30+200*rng.Float64(), floors)
		for k := range uint64(10) {
			h.Sites[key(10+k)] = all[7].series(h, rng, 30+100*rng.Float64(), floors)
		}
		c := by[x.name]
		if c == nil {
			c = &count{}
			by[x.name] = c
		}
		c.all++
		for _, v := range h.Verdicts(heap.NewReplay(&analysistest.Source{}).Position()) {
			true1 := x.leak && v.LiveSamples == int(h.Sites[key(1)].LiveSamples)
			kind := 0
			if v.Kind == KindSuspect {
				kind = 1
				c.suspected++
			} else {
				c.named++
			}
			if true1 {
				right[kind]++
			} else {
				wrong[kind]++
			}
		}
	}
	for _, x := range shapes(0, 0) {
		c := by[x.name]
		t.Logf("%-28s leak %-5v: %.3f named, %.3f suspected of %.0f", x.name, x.leak, c.named/c.all, c.suspected/c.all,
			c.all)
	}
	t.Logf("leaks: %.0f right, %.0f wrong; suspects: %.0f right, %.0f wrong", right[0], wrong[0], right[1], wrong[1])
	if wrong[0] > 0.01*(right[0]+wrong[0])+1 {
		t.Errorf("%.0f of %.0f leaks are none: more than their confidence says", wrong[0], right[0]+wrong[0])
	}
	if wrong[1] > 0.05*(right[1]+wrong[1])+1 {
		t.Errorf("%.0f of %.0f suspects do not leak", wrong[1], right[1]+wrong[1])
	}
}

// series draws a history of so many births. What dies does so in a collection: a young one takes what is young, one of
// old space, each so many collections, the rest.
func (x *simulated) series(h *detector, rng *rand.Rand, births float64, floors int) *history.Series {
	s := &history.Series{}
	n := len(h.Times)
	change := make([]int32, n)
	add := func(at, k int32, when, born float64) {
		change[at] += k
		h.Event(s, history.Event{T: when, N: float64(k), Bytes: float64(k) * 524288, Born: born})
	}
	var born, died [][2]float64
	for t := rng.ExpFloat64() / births; t < 1; t += rng.ExpFloat64() / births {
		if rng.Float64() > x.births(t)/4 { // thinned: rates up to 4
			continue
		}
		s.Sampled(uint64(t*float64(n))+1, h.To*t, true)
		born = append(born, [2]float64{t, t})
		if end := t + x.life(t); end < 1 {
			died = append(died, [2]float64{end, t})
		}
	}
	for _, b := range born {
		add(int32(min(b[0]*float64(n), float64(n-1))), 1, h.To*b[0], 0)
	}
	for _, d := range died {
		k := int32(d[0] * float64(n))
		if (d[0]-d[1])*float64(n) > 2 && floors > 0 { // old: the next collection of old space finds it
			for k < int32(n) && k%int32(floors) != 0 {
				k++
			}
		}
		if k < int32(n) {
			add(k, -1, h.Times[k], h.To*d[1])
		}
	}
	for i, c := range change {
		if c > 0 {
			s.Add(int32(i), c, float64(c)*524288)
		}
		if c < 0 {
			s.Add(int32(i), c, float64(c)*524288)
		}
	}
	s.Objects, s.Allocated = s.Taken*1000, s.Taken*524288
	return s
}
