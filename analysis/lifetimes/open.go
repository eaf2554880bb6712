package lifetimes

import "github.com/heapcam/heapcam/heap"

// openSample is a sampled allocation of an epoch whose moves and deaths are not known, such as one that a full
// collection ended. The next listing says whether it lives.
type openSample struct {
	heap.Sample
	born uint64
}

// settle takes in what the state after the newest collection, which is known, says of the open samples.
func (b *reader) settle() {
	if len(b.open) == 0 {
		return
	}
	at := map[uint64]uint64{}
	b.r.View().EachSample(func(addr uint64, s *heap.Sample) { at[s.ID] = addr })
	for i := range b.open {
		s := &b.open[i]
		l := s.life()
		l.Dead = b.now
		if b.r.Live.Get(s.ID) != nil {
			l.Seen, l.Dead = b.now, Never
			if o, ok := b.at.find(at[s.ID]); ok {
				l.Object = int(o)
			}
		}
		b.keep(l)
	}
	b.open = b.open[:0]
}

func (s *openSample) life() SampleLife {
	return SampleLife{Type: s.Type, Frame: s.Frame, Weight: s.Weight, Words: s.Size / word, Born: s.born, Seen: s.born,
		Dead: Never, Object: -1}
}

// keep adds a sample, or counts what it stands for as left out.
func (b *reader) keep(l SampleLife) {
	if len(b.t.Samples) < maxSamples {
		b.t.Samples = append(b.t.Samples, l)
		return
	}
	b.left += l.Weight * float64(l.Words)
}

// leaveOut counts what is still open at the end of the recording.
func (b *reader) leaveOut() {
	for i := range b.open {
		b.left += b.open[i].Weight * float64(b.open[i].Size/word)
	}
	b.t.LeftOut = uint64(b.left)
}

// tail estimates what was allocated after the last collection.
func (b *reader) tail() {
	bytes := 0.0
	for _, s := range b.waiting {
		bytes += s.Weight * float64(s.Size)
	}
	b.t.Tail = uint64(bytes) / word
}
