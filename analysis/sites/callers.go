package sites

import (
	"iter"
	"math"
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/trace"
)

// Callers is how often each stack was sampled, by its innermost frame. `--sites exact` tells the innermost frame of an
// object alone: its callers are those of a stack that is drawn among these, so that each has its share.
type Callers struct {
	of    map[innermost]*stacks
	sited bool     // there are objects whose innermost frame alone is known
	rest  *Callers // of frames in which no sample of these ends; nil: nothing is known of them
}

type innermost struct{ method, bci uint64 }

type stacks struct {
	frames  []uint64
	counts  []uint64
	objects []uint64 // that the samples stand for
	place   map[uint64]int
	sum     []uint64 // of objects up to each; nil: not up to date
}

// Add takes in a sample. frame is the id of its innermost frame.
func (c *Callers) Add(s *heap.Symbols, frame uint64) { c.add(s, frame, 1) }

func (c *Callers) add(s *heap.Symbols, frame, objects uint64) {
	f, ok := s.Frames[frame]
	if !ok {
		return
	}
	if c.of == nil {
		c.of = map[innermost]*stacks{}
	}
	at := innermost{f.Method, uint64(f.BCI)}
	d := c.of[at]
	if d == nil {
		d = &stacks{place: map[uint64]int{}}
		c.of[at] = d
	}
	i, ok := d.place[frame]
	if !ok {
		i = len(d.frames)
		d.place[frame] = i
		d.frames, d.counts, d.objects = append(d.frames, frame), append(d.counts, 0), append(d.objects, 0)
	}
	d.counts[i]++
	d.objects[i] += objects
	d.sum = nil
}

// Among gives the callers by the samples that live in a state: those of objects that died say nothing of it. Where none
// of them ends in a frame, all of c count. It takes in nothing more, and if c is frozen, several goroutines may use it.
func (c *Callers) Among(s *heap.Symbols, live iter.Seq[*heap.Sample]) *Callers {
	if c == nil || !c.sited {
		return c
	}
	out := &Callers{sited: c.sited, rest: c}
	var own []*heap.Sample
	for x := range live {
		if !samples.Sited(x.ID) {
			own = append(own, x)
		}
	}
	for x := range ByID(slices.Values(own)) {
		out.add(s, x.Frame, uint64(math.Round(max(1, min(x.Weight, 1<<32)))))
	}
	for _, d := range out.of {
		d.sumUp()
	}
	return out
}

// ending gives the stacks of the samples that end in f; nil: there is none.
func (c *Callers) ending(f trace.Frame) *stacks {
	for ; c != nil; c = c.rest {
		if d := c.of[innermost{f.Method, uint64(f.BCI)}]; d != nil {
			return d
		}
	}
	return nil
}

// Follow takes in the samples of the newest collection of r; to be called once after each.
func (c *Callers) Follow(r *heap.Cursor) {
	for _, s := range r.Sampled {
		c.Add(r.Symbols, s.Frame)
	}
	c.sited = r.HasSited()
}

// Frozen gives a copy that several goroutines may use at a time, and that takes in nothing more. It is nil if no object
// needs callers.
func (c *Callers) Frozen() *Callers {
	if !c.sited {
		return nil
	}
	out := &Callers{of: make(map[innermost]*stacks, len(c.of)), sited: true, rest: c.rest}
	for at, d := range c.of {
		d.sumUp()
		out.of[at] = &stacks{frames: slices.Clone(d.frames), counts: slices.Clone(d.counts),
			objects: slices.Clone(d.objects), sum: d.sum}
	}
	return out
}

// sumUp brings sum up to date.
func (d *stacks) sumUp() {
	if d.sum != nil {
		return
	}
	d.sum = make([]uint64, len(d.objects))
	all := uint64(0)
	for i, n := range d.objects {
		all += n
		d.sum[i] = all
	}
}

// Of gives the stack of the sample of that id: frame, or if that is its innermost frame alone, the one of Draw.
func (c *Callers) Of(s *heap.Symbols, frame, id uint64) uint64 {
	if c == nil || !samples.Sited(id) {
		return frame
	}
	return c.Draw(s, frame, id)
}

// Draw gives a stack for the object of that id, whose innermost frame is known. It is the same each time. Without a
// sample that ends there it is the frame alone.
func (c *Callers) Draw(s *heap.Symbols, frame, id uint64) uint64 {
	f := s.Frames[frame]
	if c == nil || f.Parent != 0 {
		return frame
	}
	d := c.ending(f)
	if d == nil {
		return frame
	}
	d.sumUp()
	id = (id ^ id>>31) * 0xbf58476d1ce4e5b9 // neighbours have ids one behind the other
	id = (id ^ id>>29) * 0x94d049bb133111eb
	at := (id ^ id>>32) % d.sum[len(d.sum)-1]
	i, _ := slices.BinarySearch(d.sum, at+1)
	return d.frames[i]
}

// Likeliest gives the stack that most samples have which end in a frame without callers, what share of so many samples
// that is; 0 samples: none ends there, or the frame has callers.
func (c *Callers) Likeliest(s *heap.Symbols, frame uint64) (stack uint64, share float64, samples uint64) {
	f := s.Frames[frame]
	d := c.ending(f)
	if d == nil || f.Parent != 0 {
		return frame, 0, 0
	}
	best := 0
	for i, n := range d.counts {
		samples += n
		if n > d.counts[best] {
			best = i
		}
	}
	return d.frames[best], float64(d.counts[best]) / float64(samples), samples
}

// otherCallers widens the bounds of the rows of all, in their order: what has callers that were drawn may have other
// ones. Of objects of a class with the same innermost frame a row may have none of these, or all.
func otherCallers(r *heap.Symbols, all []keyed, out []Row, have map[Class]heap.Count) {
	type place struct {
		class Class
		at    innermost
	}
	of := func(k Key) place {
		f := r.Frames[k.Frame]
		return place{k.Class, innermost{f.Method, uint64(f.BCI)}}
	}
	pool := map[place]heap.Count{}
	for _, x := range all {
		if d := x.t.drawn; d.Objects > 0 {
			p := pool[of(x.k)]
			pool[of(x.k)] = heap.Count{Objects: p.Objects + d.Objects, Bytes: p.Bytes + d.Bytes}
		}
	}
	if len(pool) == 0 {
		return
	}
	for i, x := range all {
		p, d, row, most := pool[of(x.k)], x.t.drawn, &out[i], have[x.k.Class]
		row.ObjectsLow -= min(row.ObjectsLow, d.Objects)
		row.BytesLow -= min(row.BytesLow, d.Bytes)
		row.ObjectsHigh = max(row.Objects, min(row.ObjectsHigh+p.Objects-d.Objects, most.Objects))
		row.BytesHigh = max(row.Bytes, min(row.BytesHigh+p.Bytes-d.Bytes, most.Bytes))
	}
}
