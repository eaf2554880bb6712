package leak

import (
	"math"

	"github.com/heapcam/heapcam/analysis/analysistest"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/trace"
)

// object is a sample of a simulated window: born at a time, unreachable from another on.
type object struct {
	site       uint64
	born, dies float64
}

// event is a collection of a simulated window. One with a listing tells which samples no one reaches.
type event struct {
	t       float64
	kind    uint64
	listing bool
	after   float64 // s from the collection to the listing
}

// world is aged with objects that are old once they have survived two collections.
func world(objects []object, events []event) (*heap.Replay, *detector) {
	return aged(2, objects, events)
}

// aged runs objects through collections, as a generational collector does: a young one frees what is young and dead,
// what has survived so many is old, and only a full one frees that. The detector sees what it sees of a recording.
func aged(old int, objects []object, events []event) (*heap.Replay, *detector) {
	r := heap.NewReplay(&analysistest.Source{})
	r.JVM.MaxHeap = 1 << 30
	r.Types[1] = trace.Type{ID: 1, Name: "shop/Order", Size: 1000}
	h := NewDetector()
	var all []*heap.Sample
	survived := map[uint64]int{}
	for i, o := range objects {
		s := &heap.Sample{Weight: 500, Sample: trace.Sample{ID: uint64(i + 1), Type: 1, Frame: o.site, Size: 1000,
			Time: uint64(o.born * 1e9)}}
		all = append(all, s)
		if r.Frames[o.site].ID == 0 {
			r.Methods[o.site] = trace.Method{ID: o.site, Class: "Lshop/Web;", Name: "m" + string(rune('0'+o.site))}
			r.Frames[o.site] = trace.Frame{ID: o.site, Method: o.site}
		}
	}
	h.first = 1
	before := 0.0
	for i, e := range events {
		r.Sampled, r.Resolved, r.Died = nil, nil, nil
		dead := map[uint64]bool{}
		for k, s := range all {
			o := objects[k]
			if o.born > e.t || survived[s.ID] < 0 {
				continue
			}
			if o.born > before || i == 0 {
				s.Birth = uint64(i + 1)
				r.Sampled = append(r.Sampled, s)
			}
			gone := o.dies <= e.t
			switch live := r.Live.Get(s.ID) != nil; {
			case gone && (survived[s.ID] < old || e.kind == trace.PauseFull):
				if live {
					r.Died = append(r.Died, s)
					r.Live.Delete(s.ID)
				}
				survived[s.ID] = -1
				continue
			case !live:
				r.Resolved = append(r.Resolved, s)
				r.Live.Put(s.ID, s)
			}
			dead[s.ID] = o.dies <= e.t+e.after
			survived[s.ID]++
		}
		for id, gone := range dead {
			if !gone {
				delete(dead, id)
			}
		}
		h.Tracker.Collection(&r.Cursor, &heap.Collection{Pause: trace.Pause{GC: uint64(i + 1), Kind: e.kind,
			Start: uint64(e.t * 1e9), PhaseStart: uint64(before * 1e9)}})
		h.spaces = append(h.spaces, spaceUse{uint64(i + 1), e.kind, 0, false})
		if e.listing {
			h.Listing(&r.Cursor, dead, e.t+e.after)
			h.listings++
		}
		before = e.t
	}
	h.interval = 512 << 10
	return r, h
}

// every gives a young collection each second of a minute, and others at the times that are asked for.
func every(full, listings []float64) (out []event) {
	in := func(all []float64, t float64) bool {
		for _, x := range all {
			if x == t {
				return true
			}
		}
		return false
	}
	for t := 1.0; t <= 60; t++ {
		e := event{t: t, kind: trace.PauseYoung, listing: in(listings, t)}
		if in(full, t) {
			e.kind = trace.PauseFull
		}
		out = append(out, e)
	}
	return out
}

// births gives the samples of a site, per a second for a minute, each with the life that its birth time gives it.
func births(site uint64, per float64, life func(born float64) float64) (out []object) {
	for i := 0.0; i < 60*per; i++ {
		t := i / per
		out = append(out, object{site, t, t + life(t)})
	}
	return out
}

func forever(float64) float64 { return math.Inf(1) }

// lives gives all objects of a cache or a queue the same life.
func lives(seconds float64) func(float64) float64 { return func(float64) float64 { return seconds } }

// queued gives the life of what a consumer takes that manages one of n, always the oldest.
func queued(n float64) func(float64) float64 {
	return func(born float64) float64 { return born*n - born }
}

// series gives that of a site of a world.
func (h *detector) series(site uint64) *history.Series {
	return h.Sites[sites.Key{Frame: site, Class: sites.Class{Name: "shop.Order"}}]
}
