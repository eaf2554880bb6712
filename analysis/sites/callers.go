package sites

import (
	"slices"

	"github.com/heapcam/heapcam/heap"
	"github.com/heapcam/heapcam/heap/samples"
)

// Callers is how often each stack was sampled, by its innermost frame. `--sites exact` tells the innermost frame of an
// object alone: its callers are those of a stack that is drawn among these, so that each has its share.
type Callers struct {
	of map[innermost]*stacks
}

type innermost struct{ method, bci uint64 }

type stacks struct {
	frames []uint64
	counts []uint64
	place  map[uint64]int
	sum    []uint64 // of counts up to each; nil: not up to date
}

// Add takes in a sample. frame is the id of its innermost frame.
func (c *Callers) Add(s *heap.Symbols, frame uint64) {
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
		d.frames, d.counts = append(d.frames, frame), append(d.counts, 0)
	}
	d.counts[i]++
	d.sum = nil
}

// Draw gives a stack for the object of that id, whose innermost frame is known. It is the same each time. Without a
// sample that ends there it is the frame alone.
func (c *Callers) Draw(s *heap.Symbols, frame, id uint64) uint64 {
	f := s.Frames[frame]
	if c == nil || f.Parent != 0 {
		return frame
	}
	d := c.of[innermost{f.Method, uint64(f.BCI)}]
	if d == nil {
		return frame
	}
	if d.sum == nil {
		d.sum = make([]uint64, len(d.counts))
		all := uint64(0)
		for i, n := range d.counts {
			all += n
			d.sum[i] = all
		}
	}
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
	d := c.of[innermost{f.Method, uint64(f.BCI)}]
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

// site gives the frame that stands for the stack of a live sample.
func (s *State) site(x *heap.Sample) uint64 {
	if s.Callers == nil || !samples.Sited(x.ID) {
		return x.Frame
	}
	return s.Callers.Draw(s.Symbols, x.Frame, x.ID)
}
