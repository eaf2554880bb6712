package samples

import "github.com/heapcam/heapcam/trace"

// Thinned follows a tracker and has the samples that it would have if the sampling interval had been longer: of those
// of a shorter interval it draws some. So a recording whose interval was lengthened is as one that had the longer
// interval all the time. Make one with Thin.
type Thinned struct {
	*Tracker
	interval    uint64
	seen, drawn uint64 // samples of a shorter interval
}

// Thin gives one that has seen nothing.
func Thin(interval uint64) *Thinned { return &Thinned{Tracker: New(), interval: interval} }

// Follow takes in what the newest collection changed in t. It must see each.
func (x *Thinned) Follow(t *Tracker) {
	x.Begin()
	x.sited = t.sited
	for _, s := range t.Sampled {
		y := x.draw(s)
		if s.Interval < x.interval {
			x.seen++
		}
		if y == nil {
			continue
		}
		if s.Interval < x.interval {
			x.drawn++
		}
		x.Sampled = append(x.Sampled, y)
	}
	x.Taken += uint64(len(x.Sampled))
	for _, s := range t.Died {
		x.Die(s.ID)
	}
	for _, s := range t.Resolved {
		if s = x.draw(s); s != nil && t.Live.Get(s.ID) != nil && x.Live.Get(s.ID) == nil {
			x.Live.Put(s.ID, s)
			x.LiveBytes += s.Size
			x.Resolved = append(x.Resolved, s)
		}
	}
}

// Share is the share that was drawn of the samples of a shorter interval.
func (x *Thinned) Share() float64 { return float64(x.drawn) / float64(max(x.seen, 1)) }

// Drawn says whether an object is drawn that is so with probability p. It is a hash: each object has its own draw, the
// same for all looks at it.
func Drawn(id uint64, p float64) bool {
	x := id*0x9e3779b97f4a7c15 ^ 0x5851f42d4c957f2d
	x = (x ^ x>>31) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>29) * 0x94d049bb133111eb
	return float64((x^x>>32)>>11)/(1<<53) < p
}

// draw gives s as a sample of the longer interval, nil if it is none.
func (x *Thinned) draw(s *Sample) *Sample {
	if s.Interval >= x.interval {
		return s
	}
	weight := trace.Weight(s.Size, x.interval)
	if !Drawn(s.ID, s.Weight/weight) {
		return nil
	}
	y := *s
	y.Interval, y.Weight = x.interval, weight
	return &y
}
