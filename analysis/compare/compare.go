// Package compare compares two recordings, before and after a change, by how fast what survives grows: in all and by
// site, with 95 % intervals.
package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/heapcam/heapcam/analysis/collection"
	"github.com/heapcam/heapcam/analysis/history"
	"github.com/heapcam/heapcam/analysis/sites"
	"github.com/heapcam/heapcam/analysis/stats"
	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/internal/ui"
)

// Growth is how the live bytes of a recording changed over time: in all, and by class and method chain. Two recordings
// are compared by it.
type Growth struct {
	Collections int
	Seconds     float64
	Allocated   float64 // bytes, estimated from all samples of the window
	times       []float64
	alloc       []float64 // bytes allocated up to each collection
	live        []float64 // exact, −1 where it is not known
	floors      []int32
	chains      map[string]*history.Series
	frames      map[string][]sites.StackFrame
	class       map[string]string
	drawn       map[string]*drawn
}

// GrowthOf replays all of r.
func GrowthOf(r *heap.Replay) (*Growth, error) {
	h := history.NewTracker(history.Survived)
	c := &Growth{chains: map[string]*history.Series{}, frames: map[string][]sites.StackFrame{},
		class: map[string]string{}, drawn: map[string]*drawn{}}
	var last []heap.Count // the newest known state by type
	if err := collection.Each(r, func(col *heap.Collection) bool {
		for _, s := range r.Sampled {
			c.Allocated += float64(s.Size) * s.Weight
		}
		h.Collection(&r.Cursor, col)
		if col.Known {
			last = append(last[:0], r.Totals.PerType()...)
		}
		c.alloc = append(c.alloc, c.Allocated)
		return true
	}); err != nil {
		return nil, err
	}
	c.times, c.live, c.floors, c.Collections = h.Times, h.Live, h.Floors, len(h.Times)
	if n := len(c.times); n > 0 {
		c.Seconds = c.times[n-1] - c.times[0]
	}
	idOf := func(k sites.Key) string {
		frames := sites.Stack(r.Symbols, k.Frame, sites.MaxFrames)
		id := sites.ID(k.Class.Name, frames)
		c.frames[id], c.class[id] = frames, k.Class.Name
		return id
	}
	if r.HasSited() {
		all := c.draw(r.Symbols, h)
		for _, k := range slices.SortedFunc(maps.Keys(all), sites.Key.Compare) {
			d := all[k]
			if h.Sites[k] == nil {
				h.Sites[k] = &history.Series{}
			}
			if x := c.drawn[idOf(k)]; x != nil {
				sum(x.bytes, d.bytes, 1)
				if !slices.Equal(x.from, d.from) { // else both share what there is
					sum(x.most, d.most, 1)
				}
			} else {
				c.drawn[idOf(k)] = d
			}
		}
	}
	state := sites.State{Symbols: r.Symbols, Samples: slices.Collect(r.Live.Values()), Types: last}
	for k, t := range state.Tallies() { // no site has more than there is of its class
		if figure, stood := t.Bytes(); figure < stood && h.Sites[k] != nil {
			h.Sites[k].Scale(figure / stood)
		}
	}
	same := map[string][]sites.Key{}
	for k := range h.Sites {
		same[idOf(k)] = append(same[idOf(k)], k)
	}
	for id, ks := range same {
		c.chains[id] = h.Sum(ks)
	}
	return c, nil
}

// Slope is a rate with its 95 % interval.
type Slope struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// SiteSlope is how one site's survivors grew in both recordings; a recording that does not have the site has zeros.
type SiteSlope struct {
	Class  string             `json:"class"`
	Site   []sites.StackFrame `json:"site"`    // lines of the recording after, if it has the site
	SiteID string             `json:"site_id"` // by which the sites of the two were matched
	Before Slope              `json:"before_bytes_per_second"`
	After  Slope              `json:"after_bytes_per_second"`
	// Per byte that the program allocated: a fix may also make it faster.
	BeforeShare Slope `json:"before_bytes_per_allocated_byte"`
	AfterShare  Slope `json:"after_bytes_per_allocated_byte"`
	// Objects have drawn callers (recorded with --sites exact). The bounds allow any other of these callers.
	Drawn bool `json:"callers_drawn,omitempty"`
	// Share of the objects with this innermost frame that this site has after the last collection of the first
	// recording.
	ShareBefore float64 `json:"callers_share_before,omitempty"`
	// The same of the second recording.
	ShareAfter float64 `json:"callers_share_after,omitempty"`
}

// Report is the whole of `heapcam diff` of two recordings.
type Report struct {
	Schema      string      `json:"schema"`
	Before      Window      `json:"before"`
	After       Window      `json:"after"`
	Live        SiteSlope   `json:"live"` // all live bytes, exact; class and site are empty
	Sites       []SiteSlope `json:"sites"`
	Verdicts    []Verdict   `json:"verdicts"` // new ones first, then those of both, then those that are gone
	Sentence    ui.Flow     `json:"sentence"`
	OnlyBefore  int         `json:"sites_only_before"`
	OnlyAfter   int         `json:"sites_only_after"`
	SitesShared int         `json:"sites_shared"`
	// both recordings have collections of old space, after which no garbage counts
	Swept bool `json:"old_space_collected"`
}

// Window is the extent of a recording.
type Window struct {
	Collections int     `json:"collections"`
	Seconds     float64 `json:"seconds"`
	Allocated   float64 `json:"allocated_bytes"` // estimated
}

// picks are the collections of which a slope of v is made: those that left no dead in old space, if the window has
// eight of them, else all; at most 300. nil: all values are known.
func (c *Growth) picks(v []float64) []int {
	var at []int
	if len(c.floors) >= 8 {
		for _, i := range c.floors {
			at = append(at, int(i))
		}
	} else {
		for i := range c.times {
			at = append(at, i)
		}
	}
	at = slices.DeleteFunc(at, func(i int) bool { return v != nil && v[i] < 0 })
	const most = 300
	n := min(most, len(at))
	for k := range n {
		at[k] = at[k*len(at)/n]
	}
	return at[:n]
}

// points gives the times, bytes allocated and values that a slope is made of.
func (c *Growth) points(v []float64) (t, a, y []float64) {
	for _, i := range c.picks(v) {
		t, a, y = append(t, c.times[i]), append(a, c.alloc[i]), append(y, v[i])
	}
	return t, a, y
}

// slopePoints is how many collections a slope needs.
const slopePoints = 5

// slope is that of a series: nothing of fewer than slopePoints points.
func slope(t, v []float64) Slope {
	if len(v) < slopePoints {
		return Slope{}
	}
	value, low, high := stats.Sen(t, v)
	return Slope{value, low, high}
}

// drawError is half of the 95 % interval of a growth, bytes, that comes from its samples being drawn: those that one
// end of the window has and the other has not. v is the bytes that the n samples stand for, after each collection; at
// are those that count.
func drawError(s *history.Series, v, n []float64, at []int) float64 {
	first, last := at[0], at[len(at)-1]
	fresh := max(1, math.Abs(n[last]-n[first]))
	each := 0.0 // bytes that a sample stands for
	for _, i := range at {
		if n[i] > 0 {
			each = max(each, v[i]/n[i])
		}
	}
	return 1.96 * each * math.Sqrt(fresh*(1-1/max(1, s.Objects/max(1, s.Taken))))
}

// blur widens the interval by an error that does not depend on it, half of its interval.
func (s *Slope) blur(e float64) {
	s.Low, s.High = s.Value-math.Hypot(s.Value-s.Low, e), s.Value+math.Hypot(s.High-s.Value, e)
}

func (c *Growth) slopes(id string) (perSecond, perByte Slope) {
	v, n := c.live, make([]float64, len(c.times))
	s, stood := c.chains[id], []float64(nil) // stood: by samples, without objects whose site is exact
	if id != "" {
		if s == nil {
			return
		}
		v = make([]float64, len(c.times))
		s.Spread(v, n)
		stood = slices.Clone(v)
		if d := c.drawn[id]; d != nil {
			c.add(v, d.bytes, 1)
		}
	}
	t, a, y := c.points(v)
	perSecond, perByte = slope(t, y), slope(a, y)
	if s != nil && len(y) >= slopePoints {
		e := drawError(s, stood, n, c.picks(v))
		perSecond.blur(e / max(t[len(t)-1]-t[0], 1e-9))
		perByte.blur(e / max(a[len(a)-1]-a[0], 1))
	}
	c.otherCallers(id, v, &perSecond, &perByte)
	return perSecond, perByte
}

// Recordings compares two recordings, before and after a change.
func Recordings(before, after *Growth) *Report {
	d := &Report{Schema: "heapcam.diff2/1", Sites: []SiteSlope{}, Verdicts: []Verdict{},
		Swept: len(before.floors) > 0 && len(after.floors) > 0}
	for _, x := range []struct {
		to *Window
		c  *Growth
	}{{&d.Before, before}, {&d.After, after}} {
		*x.to = Window{x.c.Collections, x.c.Seconds, x.c.Allocated}
	}
	d.Live.Site = []sites.StackFrame{}
	d.Live.Before, d.Live.BeforeShare = before.slopes("")
	d.Live.After, d.Live.AfterShare = after.slopes("")
	ids := map[string]bool{}
	for id := range before.chains {
		ids[id] = true
		if after.chains[id] == nil {
			d.OnlyBefore++
		} else {
			d.SitesShared++
		}
	}
	for id := range after.chains {
		if !ids[id] {
			d.OnlyAfter++
		}
		ids[id] = true
	}
	for id := range ids {
		s := SiteSlope{Class: after.class[id], Site: after.frames[id], SiteID: id}
		if s.Site == nil {
			s.Class, s.Site = before.class[id], before.frames[id]
		}
		s.Before, s.BeforeShare = before.slopes(id)
		s.After, s.AfterShare = after.slopes(id)
		s.Drawn = before.drawn[id] != nil || after.drawn[id] != nil
		s.ShareBefore, s.ShareAfter = before.drawn[id].share(), after.drawn[id].share()
		if s.Before.Value != 0 || s.After.Value != 0 {
			d.Sites = append(d.Sites, s)
		}
	}
	slices.SortFunc(d.Sites, func(x, y SiteSlope) int {
		gap := func(s SiteSlope) float64 { return math.Abs(s.After.Value - s.Before.Value) }
		return cmp.Or(cmp.Compare(gap(y), gap(x)), cmp.Compare(x.Class, y.Class),
			cmp.Compare(fmt.Sprint(x.Site), fmt.Sprint(y.Site)))
	})
	d.Sites = d.Sites[:min(len(d.Sites), 50)]
	d.Sentence = d.sentence()
	return d
}
