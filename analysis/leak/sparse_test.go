package leak

import (
	"testing"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// TestSparse judges sites by three collections in a minute: what was allocated when, what of it was dead at the third,
// and when no more was.
func TestSparse(t *testing.T) {
	at := []float64{20, 40, 60}
	for name, c := range map[string]struct {
		born   func(i int) float64 // of sample i of 50, in seconds
		dead   func(i int) bool    // found by the third collection
		full   bool                // which collected old space
		taken  func(i int) bool    // was another sample taken then that did not last? nil: none
		collec int
		leak   bool
	}{
		"leak": {born: func(i int) float64 { return float64(i) * 1.2 }, collec: 3, leak: true},
		"leak that only part of it does": {born: func(i int) float64 { return float64(i) * 1.2 },
			taken: func(i int) bool { return true }, collec: 3, leak: true},
		"leak, two collections":    {born: func(i int) float64 { return float64(i) * 0.8 }, collec: 2, leak: true},
		"start-up":                 {born: func(i int) float64 { return float64(i) * 0.4 }, collec: 3},
		"stopped after two thirds": {born: func(i int) float64 { return float64(i) * 0.8 }, collec: 3},
		"a queue, young": {born: func(i int) float64 { return float64(i) * 1.2 },
			dead: func(i int) bool { return i >= 18 && i < 30 }, collec: 3},
		"a queue, full collection": {born: func(i int) float64 { return float64(i) * 1.2 },
			dead: func(i int) bool { return i < 30 }, full: true, collec: 3},
		"a batch at the end": {born: func(i int) float64 { return 40 + float64(i)*0.3 }, collec: 3},
	} {
		h := NewDetector()
		for i, x := range at[:c.collec] {
			h.Times, h.Live, h.nodes = append(h.Times, x), append(h.Live, -1), append(h.nodes, uint64(1000*(i+1)))
			h.MovedN = []int32{max(0, int32(i)-1), int32(i)}
		}
		h.To = h.Times[c.collec-1]
		if c.full {
			h.Floors = []int32{2}
		}
		s := &history.Series{}
		for i := range 50 {
			b := c.born(i)
			s.Sampled(uint64(b/20)+1, b, true)
			s.Objects++
			s.Allocated += 524288
			if b > h.To-history.Lasting {
				continue
			}
			h.Event(s, history.Event{T: b, N: 1, Bytes: 524288})
			if c.dead != nil && c.dead(i) {
				h.Event(s, history.Event{T: at[2], N: -1, Bytes: -524288, Born: b})
			}
			if c.taken != nil && c.taken(i) {
				s.Sampled(uint64(b/20)+1, b, true)
			}
		}
		h.Sites[key(1)] = s
		if got := h.Verdicts(heap.NewReplay(&analysistest.Source{}).Position()); len(got) == 1 != c.leak {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestDiedAtOnce: batches that ended are found by what died young, and so are sites that stopped allocating.
func TestDiedAtOnce(t *testing.T) {
	site := func(taken, alive []float64) *history.Series {
		s := &history.Series{}
		for i := range taken {
			s.Births = append(s.Births, history.Birth{Gc: uint64(i + 1), Taken: taken[i], Alive: alive[i]})
		}
		return s
	}
	h := NewDetector()
	for name, c := range map[string]struct {
		taken, alive []float64
		atOnce       bool
	}{
		"all live":  {[]float64{5, 5, 5, 5, 5, 5, 5}, []float64{5, 5, 5, 5, 5, 5, 5}, false},
		"half live": {[]float64{8, 8, 8, 8, 8, 8, 8}, []float64{5, 3, 4, 6, 2, 4, 4}, false},
		"chance": {[]float64{4, 7, 6, 5, 4, 6, 9, 9, 13, 9, 4, 11},
			[]float64{2, 2, 4, 2, 2, 2, 3, 5, 9, 3, 3, 4}, false},
		"a queue that grows":   {[]float64{12, 8, 8, 8, 8, 8, 8}, []float64{0, 0, 8, 8, 8, 8, 8}, false},
		"a hole":               {[]float64{8, 8, 8, 8, 8, 8, 8}, []float64{8, 8, 0, 8, 8, 8, 8}, true},
		"a hole of few":        {[]float64{8, 8, 1, 8, 8, 8, 8}, []float64{8, 8, 0, 7, 8, 8, 8}, false},
		"a hole over three":    {[]float64{4, 4, 4, 4, 4, 4, 4}, []float64{4, 4, 0, 0, 0, 4, 4}, true},
		"the newest die still": {[]float64{8, 8, 8, 8, 8, 8, 8, 8}, []float64{8, 8, 8, 8, 8, 8, 8, 0}, false},
	} {
		h.Newest = uint64(max(8, len(c.taken)))
		if got := h.diedAtOnce(site(c.taken, c.alive)); got != c.atOnce {
			t.Errorf("%s: %v", name, got)
		}
	}
	h.From, h.To = 0, 60
	steady, bursts, ended := &history.Series{}, &history.Series{}, &history.Series{}
	for i := range 60 {
		steady.Sampled(1, float64(i), true)
		bursts.Sampled(1, float64(i/10)*9, true)
		ended.Sampled(1, float64(i)*0.7, true)
	}
	if h.silent(steady, h.clockTime) || h.silent(bursts, h.clockTime) || !h.silent(ended, h.clockTime) {
		t.Errorf("silent: steady %v, bursts %v, ended %v", h.silent(steady, h.clockTime), h.silent(bursts, h.clockTime),
			h.silent(ended, h.clockTime))
	}
}

// TestReplaces tells a cache that was full when its JVM was attached to, whose class does not grow, from a leak, whose
// class does.
func TestReplaces(t *testing.T) {
	r := heap.NewReplay(&analysistest.Source{})
	r.Types[1] = trace.Type{ID: 1, Name: "a/Entry"}
	r.Types[2] = trace.Type{ID: 2, Name: "a/Other"}
	state := func(entries, others uint64) []heap.Count {
		return []heap.Count{{}, {Objects: 1, Bytes: entries}, {Objects: 1, Bytes: others}}
	}
	for name, c := range map[string]struct {
		begun, floor1, floor2 []heap.Count
		floors                []int32
		want                  bool
	}{
		"full, one collection of old space":  {state(20e6, 1), state(19e6, 1), state(19e6, 1), []int32{30}, true},
		"leaks, one collection of old space": {state(10e6, 1), state(13e6, 1), state(13e6, 1), []int32{30}, false},
		"full, two":                          {state(20e6, 1), state(10e6, 1), state(10e6, 9e6), []int32{10, 30}, true},
		"leaks beside garbage, two":          {state(40e6, 1), state(10e6, 1), state(12e6, 1), []int32{10, 30}, false},
		"not known":                          {state(40e6, 1), nil, nil, nil, false},
	} {
		h := NewDetector()
		var v []float64
		for i := range 40 {
			h.Times, v = append(h.Times, float64(i)), append(v, float64(i)*1e5)
		}
		h.MovedN = []int32{39, 39}
		h.late, h.Floors, h.begun, h.floor1, h.floor2 = true, c.floors, c.begun, c.floor1, c.floor2
		x := candidate{key: sites.Key{Frame: 1, Class: sites.ClassOf(r.Symbols, 1).Folded()}, s: dense(v)}
		if got := h.replaces(r.Symbols, &x); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
