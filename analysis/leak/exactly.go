package leak

import (
	"math"

	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/heap"
)

// Reference listings count the live objects of each class exactly. Where nearly all of a class is of one site, these
// are the site's, and show how fast they came even if samples of a time were lost.

// nearlyAll is the share of the live samples of its class that a site has at least, by bytes, and exactMost how many
// objects count: more do not make anything surer.
const (
	nearlyAll = 0.8
	exactMost = 1e4
)

// exactly is how many objects of a site's mean size take the bytes of its class by listing; at is in seconds. The zero
// value says nothing.
type exactly struct{ at, n []float64 }

// exactlyOf gives the live objects of a candidate's class at the listings, if nearly all of them are the candidate's.
func (h *detector) exactlyOf(r *heap.Symbols, c *candidate) (x exactly) {
	if len(h.alive.at) < 2 || h.late || h.From > cutOff {
		return x
	}
	own, class := 0.0, c.key.Class
	for _, k := range c.keys() {
		if k.Class != class {
			return x
		}
		own += max(0, h.Sites[k].LiveBytes)
	}
	if own <= 0 || own < nearlyAll*h.ofClass(class) {
		return x
	}
	_, v := h.alive.of(r, class)
	first := 0.0 // what others had of the class when the recording began
	for id := range h.alive.typesOf(class) {
		if int(id) < len(h.early) {
			first += float64(h.early[id].Bytes)
		}
	}
	if i := h.place(h.earlyAt); i >= 0 {
		own := h.curve(c.s)
		first -= interpolate(own.t, own.v, h.Times[i])
	}
	size := c.s.Allocated / max(1, c.s.Objects)
	for _, bytes := range v {
		x.n = append(x.n, max(0, bytes-max(0, first))/max(1, size))
	}
	x.at = h.alive.at
	return x
}

// ofClass gives the bytes that the live samples of all sites of a class stand for.
func (h *detector) ofClass(class sites.Class) float64 {
	if h.liveOf == nil {
		h.liveOf = map[sites.Class]float64{}
		for k, s := range h.Sites {
			h.liveOf[k.Class] += max(0, s.LiveBytes)
		}
	}
	return h.liveOf[class]
}

// exactTimes are how many objects lived at a listing, and how many more at the newest one.
type exactTimes struct{ was, now, at, until float64 }

// between gives these for a listing about the middle of the time from from on.
func (x exactly) between(from float64) (out exactTimes, ok bool) {
	if len(x.at) < 2 {
		return out, false
	}
	last := len(x.at) - 1
	out.until = x.at[last]
	far := func(at float64) float64 { return math.Abs(at - (from+out.until)/2) }
	for i, at := range x.at[:last] {
		if at > from && out.until-at >= (out.until-from)/4 && (!ok || far(at) < far(out.at)) {
			out.at, out.was, out.now, ok = at, x.n[i], max(0, x.n[last]-x.n[i]), true
		}
	}
	return out, ok
}
