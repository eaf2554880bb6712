// Package view looks at the heap after one collection: it folds objects by their properties, finds their spaces and
// samples, and keeps views of many collections side by side.
//
// Terms: to *fold* is to count objects by the properties that somebody asks for, so that no query handles single
// objects. A *page* is a stretch of chunks; views that were frozen share the pages that have not changed between them.
// This package does not read recordings.
package view

import (
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/state"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/trace"
)

// Symbols are the names of a recording.
type Symbols = symbols.Table

// Totals is how many objects there are, in all and by type.
type Totals interface {
	Objects() int
	Bytes() uint64
	// PerType gives objects and bytes by type id, of ids below state.DenseTypes. It stays the owner's, until the next
	// call.
	PerType() []state.Count
}

// View is the heap after one collection. Each of Totals, Counts and State says more than the one before it, and is nil
// if so much is not known.
type View struct {
	*Symbols
	Totals  Totals
	Counts  *state.Counts
	State   *state.State
	GC      uint64            // the collection
	First   uint64            // the first collection after which the state was known
	Ends    map[uint64]uint64 // of each collection the end of its pause, ns since the probe's start
	Regions []trace.RegionRun // of G1
	// Uncompacted says that dead objects of regions that G1 on 17 did not compact may be among the objects.
	Uncompacted bool
	// Relisted is the newest collection from whose listing on the state is followed, 0: none. Then some objects of the
	// state before have lost their identity, and with it their birth (Object.AtLeast).
	Relisted uint64
	Live     *samples.Live // nil in a view that was frozen: ask Sample

	lives  *samples.Lives // of a view that was frozen, in place of Live
	labels *Labels
	pages  map[uint64]*page
	born   []bornCount // of counts that can be folded by sites
}

// Sample gives the sample of that id if it is live: resolved and not known dead; nil if not.
func (v *View) Sample(id uint64) *samples.Sample {
	find, done := v.samples()
	defer done()
	return find(id)
}

// LiveSamples gives all live samples, by id. They are only read.
func (v *View) LiveSamples() *samples.Live {
	if v.lives == nil {
		return v.Live
	}
	return v.lives.Live(v.GC)
}

// samples is Sample for many calls. done ends it.
func (v *View) samples() (find func(id uint64) *samples.Sample, done func()) {
	l := v.lives
	if l == nil {
		return func(id uint64) *samples.Sample { return v.Live.Get(id) }, func() {}
	}
	l.Mu.RLock()
	return func(id uint64) *samples.Sample { return l.SampleAt(id, v.GC) }, l.Mu.RUnlock
}

// EachSample calls f for each sampled object of the state with its address in words, by address.
func (v *View) EachSample(f func(addr uint64, s *samples.Sample)) {
	st := v.State
	for _, k := range st.Keys(nil, 0, 1<<46) {
		c := st.Chunks[k]
		if len(c.Samples) == 0 {
			continue
		}
		st.Tidy(c)
		for i, sa := range c.Samples {
			if i+1 < len(c.Samples) && c.Samples[i+1].Off == sa.Off { // the last of one offset counts
				continue
			}
			if s := v.Sample(sa.ID); s != nil {
				f(k<<state.ChunkShift|uint64(sa.Off), s)
			}
		}
	}
}

// Labelled gives the objects of the view labels, for WantLabel; nil takes them away.
func (v *View) Labelled(l *Labels) { v.labels = l }

// Label gives the label of the object at a word from the heap base.
func (v *View) Label(word uint64) uint32 { return v.labels.Of(word) }

// Share lets v fold pages of objects that have not changed since the frozen view from with what is counted of them.
func (v *View) Share(from *View) { v.pages = from.pages }
