// Package heap rebuilds the heap's state after any collection from a stream of blocks, from any sync point on
// (docs/format/stream.md, "How a reader applies an EPOCH").
//
// Terms: the state is *known* from a sync point on, until an epoch that is not exact; *before the tape* are objects older than the
// recording. Invariants: what a stream says is decoded within limits; a moved object must be of the type that was known at its place; a move
// of something unknown counts as a birth. A sync point replaces the state, and if the state was known it is compared with it first
// (compare.go). Through a pause without fates, which full collections are, the identity of objects is kept where it is proven (identity.go);
// all others are "this or another object of the same type", and their age is a lower bound: Object.AtLeast. It does not read files and does
// not judge.
//
// Memory: the state takes 6 to 10 bytes an object, and as much again while a sync point is compared; a dictionary of pairs of type and
// length and the live samples come on top.
package heap

import (
	"errors"
	"fmt"
	"io"

	"github.com/heapcam/heapcam/trace"
)

// BlockSource gives the blocks of a recording, io.EOF at its end. An error that is not io.EOF is damage; the source may be asked again for
// what follows it.
type BlockSource interface {
	Next() (trace.Block, error)
}

// Sample is a sampled allocation and what is known of it. Weight is how many objects of its kind it stands for.
type Sample struct {
	trace.Sample
	Birth  uint64 // collection number of its phase
	Weight float64
}

// Collection is one epoch as replayed.
type Collection struct {
	trace.Pause
	Spaces               []trace.Space
	Known                bool   // the state after it is known
	Synced               bool   // a sync point stands at it
	Objects, Bytes       uint64 // of the state, if known
	Used                 uint64 // bytes, all spaces, after it
	Born, Died, Promoted trace.CensusCell
	Census               []trace.CensusRow // the rows that these are sums of, by type
	LiveSamples          int
	SampledBytes         uint64
	SyncProbe            uint64 // ns, the listing's cost
	EpochsLost           uint64 // told by gaps before it
	// Of a collection whose fates are not told (full ones), if the state before it was known: how many objects its sync point lists, and of
	// how many the identity is proven without a sample.
	Listed, Proven uint64
}

// Replayer replays a stream. Errors in what the stream says are in Faults.
type Replayer struct {
	src     BlockSource
	JVM     trace.JVM
	Types   map[uint64]trace.Type
	Loaders map[uint64]trace.Loader
	Methods map[uint64]trace.Method
	Frames  map[uint64]trace.Frame
	Threads map[uint64]trace.Thread

	State *State
	Known bool
	Live  map[uint64]*Sample // resolved and not known dead, by id
	// Took are the samples that were taken up to the newest collection, Came and Went are what it added to Live and took out of it. They stay
	// the replayer's, until the next call of Next.
	Took, Came, Went []*Sample
	// OnListing, if set, is called when a sync point gave a state and no collection at hand belongs to it: where reading starts.
	OnListing func(gc uint64)
	// OnSummary, if set, is called with each summary, the state being that after the newest collection so far.
	OnSummary func(*trace.Summary)
	Compared  []Comparison
	Faults    []string
	Damage    []error
	Gaps      []trace.Gap
	End       *trace.End
	Taken     uint64 // samples seen
	Unsure    bool   // of NewCounter: what lives may not be what State says
	// Uncompacted says that listings may hold dead objects of regions that G1 on 17 did not compact: the probe could not tell them.
	Uncompacted bool
	SitesCut    *trace.SitesCut // what the recorder says of a full table of frames, nil if it was not full

	stacks map[trace.Frame]uint64 // frames without their ids
	again  map[uint64]uint64      // frames of a stack that has an id already

	table   *trace.TypeTable
	fresh   fresh
	past    *Lives      // of a kept state, in place of Live
	sites   []bornCount // of one that Places counted
	gc      uint64
	pending *Collection
	lost    uint64
	sampled uint64 // bytes of the samples in Live
	back    *trace.Block
	moved   moved // scratch

	was     bool              // the state before the newest, inexact epoch is State
	edenIn  bool              // the state may hold objects of eden
	swept   bool              // a Remark or Cleanup since the newest sync point
	regions []trace.RegionRun // of G1, after the newest pause

	// First is the first collection after which the state was known, 0 if none yet; Ends gives the end of each pause, ns since the probe's start.
	First uint64
	Ends  map[uint64]uint64
}

// NewReplayer begins at the start of src.
func NewReplayer(src BlockSource) *Replayer {
	return &Replayer{src: src, Types: map[uint64]trace.Type{}, Loaders: map[uint64]trace.Loader{}, Methods: map[uint64]trace.Method{},
		Frames: map[uint64]trace.Frame{}, stacks: map[trace.Frame]uint64{}, Threads: map[uint64]trace.Thread{}, State: newState(), Live: map[uint64]*Sample{},
		table: trace.NewTypeTable(8)}
}

func (r *Replayer) fault(format string, args ...any) {
	if len(r.Faults) < 1000 {
		r.Faults = append(r.Faults, fmt.Sprintf(format, args...))
	}
}

// Next replays to the next collection, its sync point included. io.EOF at the end; *trace.TooNewError when the stream is of a later format.
func (r *Replayer) Next() (*Collection, error) {
	clear(r.Took)
	clear(r.Came)
	clear(r.Went)
	r.Took, r.Came, r.Went = r.Took[:0], r.Came[:0], r.Went[:0]
	for {
		b, err := r.block()
		if err == io.EOF {
			if c := r.pending; c != nil {
				r.pending = nil
				return r.close(c), nil
			}
			return nil, io.EOF
		}
		if err != nil {
			c := r.settled()
			r.Damage = append(r.Damage, err)
			r.Known = false
			if c != nil {
				return c, nil
			}
			if len(r.Damage) > 10000 {
				return nil, err
			}
			continue
		}
		if b.Kind == trace.KindGap {
			c := r.settled()
			if err := r.apply(b); err != nil {
				r.fault("%v", err)
			}
			if c != nil {
				return c, nil
			}
			continue
		}
		if c := r.pending; c != nil && b.Kind == trace.KindEpoch {
			r.back, r.pending = &b, nil
			return r.close(c), nil
		}
		if err := r.apply(b); err == errLater {
			c := r.pending
			r.back, r.pending = &b, nil
			return r.close(c), nil
		} else if err != nil {
			var newer *trace.TooNewError
			if errors.As(err, &newer) {
				return nil, err
			}
			r.fault("%v", err)
			if b.Kind == trace.KindEpoch || b.Kind == trace.KindSync {
				r.Known = false
			}
		}
	}
}

// settled gives the collection at hand if its state is known, before something is read that ends the knowledge: what is lost later does
// not make it unknown. One whose state is not known waits for its sync point.
func (r *Replayer) settled() *Collection {
	c := r.pending
	if c == nil || !r.Known {
		return nil
	}
	r.pending = nil
	return r.close(c)
}

func (r *Replayer) block() (trace.Block, error) {
	if r.back != nil {
		b := *r.back
		r.back = nil
		return b, nil
	}
	return r.src.Next()
}

func (r *Replayer) close(c *Collection) *Collection {
	c.Known = r.Known
	if r.Ends == nil {
		r.Ends = map[uint64]uint64{}
	}
	r.Ends[c.GC] = c.Start + c.Dur
	if r.Known {
		if r.First == 0 {
			r.First = c.GC
		}
		c.Objects, c.Bytes = uint64(r.State.n), r.State.Bytes()
	}
	c.LiveSamples, c.SampledBytes = len(r.Live), r.sampled
	return c
}

func (r *Replayer) apply(b trace.Block) error {
	switch b.Kind {
	case trace.KindMeta:
		m, err := trace.DecodeMeta(b)
		if err == nil && m.HasJVM {
			r.JVM = m.JVM
			r.table.SetAlign(m.JVM.Align)
		}
		for _, s := range m.SitesCut {
			r.SitesCut = &s
		}
		return err
	case trace.KindDefs:
		return r.define(b)
	case trace.KindSamples:
		ss, err := trace.DecodeSamples(b)
		r.Taken += uint64(len(ss))
		all := make([]Sample, len(ss)) // in one piece; those that survive move out of it, so that it goes
		for i, s := range ss {
			s.Frame = r.Site(s.Frame)
			all[i] = Sample{Sample: s, Birth: r.gc + 1, Weight: trace.Weight(s.Size, s.Interval)}
			if !r.fresh.add(&all[i]) {
				break
			}
			r.Took = append(r.Took, &all[i])
		}
		return err
	case trace.KindEpoch:
		return r.epoch(b)
	case trace.KindSync:
		return r.sync(b)
	case trace.KindGap:
		g, err := trace.DecodeGap(b)
		if err == nil {
			r.Gaps = append(r.Gaps, g)
			r.lost += g.Epochs
			if g.Epochs > 0 {
				r.Known = false
			}
		}
		return err
	case trace.KindEnd:
		e, err := trace.DecodeEnd(b)
		if err == nil {
			r.End = &e
		}
		return err
	case trace.KindSummary:
		if r.OnSummary == nil {
			return nil
		}
		s, err := trace.DecodeSummary(b)
		if err == nil {
			r.OnSummary(s)
		}
		return err
	}
	return nil
}

func (r *Replayer) define(b trace.Block) error {
	d, err := trace.DecodeDefs(b)
	if err != nil {
		return err
	}
	for _, t := range d.Types {
		r.Types[t.ID] = t
	}
	for _, l := range d.Loaders {
		r.Loaders[l.ID] = l
	}
	for _, m := range d.Methods {
		r.Methods[m.ID] = m
	}
	for _, f := range d.Frames {
		r.frame(f)
	}
	for _, t := range d.Threads {
		r.Threads[t.ID] = t
	}
	return r.table.DefineAll(d.Types)
}

// frame takes in a definition. A probe whose table was full may give a stack that comes again a new id: then the first one stands for it.
func (r *Replayer) frame(f trace.Frame) {
	f.Parent = r.Site(f.Parent)
	same := f
	same.ID = 0
	if first, ok := r.stacks[same]; !ok {
		r.stacks[same] = f.ID
	} else if first != f.ID {
		if r.again == nil {
			r.again = map[uint64]uint64{}
		}
		r.again[f.ID] = first
	}
	r.Frames[f.ID] = f
}

// Site gives the id that stands for all frames with the stack of this one.
func (r *Replayer) Site(frame uint64) uint64 {
	if first, ok := r.again[frame]; ok {
		return first
	}
	return frame
}

func (r *Replayer) epoch(b trace.Block) error {
	e, err := trace.DecodeEpoch(b)
	if err != nil {
		return err
	}
	if r.gc != 0 && e.Pause.GC != r.gc+1 {
		r.Known = false
		for _, s := range r.fresh.all { // of any phase since
			if s.Birth == r.gc+1 {
				s.Birth = e.Pause.GC
			}
		}
		if e.Pause.GC > r.gc {
			r.lost = max(r.lost, e.Pause.GC-r.gc-1) // the gap that tells of them says the same
		}
	}
	r.gc = e.Pause.GC
	c := &Collection{Pause: e.Pause, Spaces: e.Spaces, Census: e.Census, EpochsLost: r.lost}
	r.lost = 0
	for _, s := range e.Spaces {
		c.Used += s.UsedAfter
	}
	for _, row := range e.Census {
		for i, cell := range row.Cells {
			to := &c.Born
			switch i {
			case trace.CensusPromoted:
				to = &c.Promoted
			case trace.CensusDiedYoung, trace.CensusDiedOld:
				to = &c.Died
			}
			to.Objects += cell.Objects
			to.Bytes += cell.Bytes
		}
	}
	r.pending = c
	r.was = false
	if e.Pause.Flags&trace.PauseExact == 0 {
		r.was, r.Known = r.Known, false
	}
	if k := e.Pause.Kind; k == trace.PauseRemark || k == trace.PauseCleanup {
		r.swept = true
	}
	switch {
	case !r.Known:
	case r.State.counted:
		r.census(e)
	default:
		if err := r.fates(e); err != nil {
			r.Known = false
			r.fault("collection %d: %v", r.gc, err)
		}
	}
	for _, s := range e.Resolved {
		birth := uint64(atLeast)
		if f := r.fresh.find(s.ID); f != nil {
			birth = f.Birth
			if r.Live[s.ID] == nil {
				x := *f
				r.Came = append(r.Came, &x)
				r.Live[s.ID] = &x
				r.sampled += x.Size
			}
		}
		if r.Known && !r.State.counted && !r.State.setSample(s.Addr, s.ID, birth) {
			r.fault("collection %d: sample %d resolved to %d, where nothing stands", r.gc, s.ID, s.Addr)
		}
	}
	for _, id := range e.SampleDead {
		if s := r.Live[id]; s != nil {
			r.Went = append(r.Went, s)
			r.sampled -= s.Size
			delete(r.Live, id)
		}
	}
	if e.Pause.Flags&trace.PauseEdenKept == 0 {
		r.fresh.clear()
		r.edenIn = false
	}
	if r.Known { // of an inexact epoch the listing needs the regions before
		r.regions = e.Regions
	}
	return nil
}

// fates applies what an exact epoch says. On an error the state is of no use any more.
func (r *Replayer) fates(e *trace.Epoch) error {
	st := r.State
	st.renumber()
	t := taker{s: st}
	m := &r.moved
	defer func() {
		t.finish()
		m.lose(st)
		m.clear()
	}()
	codes := st.codes
	gc := uint32(r.gc)
	walk := func(blob []byte) error {
		w := trace.NewWalkTokens(blob, r.table)
		w.Alive = true
		for w.Next() {
			switch w.Kind {
			case trace.WalkSegment:
				t.begin(w.Addr, w.Words)
			case trace.WalkMove:
				code, birth, sample, ok := t.take(w.Addr)
				switch {
				case !ok:
					code, birth = codes.of(w.Type, w.Length, w.Words), gc
					codes.count[code]++
					st.n++
				case codes.typ[code] != w.Type || codes.length[code] != w.Length:
					m.add(w.Dest, code, birth, sample)
					return fmt.Errorf("type %d moves from %d where type %d was known", w.Type, w.Addr, codes.typ[code])
				}
				m.add(w.Dest, code, birth, sample)
			}
		}
		t.finish()
		return w.Err()
	}
	for _, b := range e.Moves {
		if err := walk(b); err != nil {
			return err
		}
	}
	for _, b := range e.Allocs {
		if err := walk(b); err != nil {
			return err
		}
	}
	for _, f := range e.Freed {
		t.begin(f.Start, f.Words)
	}
	t.finish()
	m.settle(st)
	m.clear()
	for _, b := range e.Births {
		l := trace.NewListTokens(b, r.table)
		for l.Next() {
			if l.Kind == trace.ListObject {
				st.put(l.Addr, codes.of(l.Type, l.Length, l.Words), gc)
			}
		}
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}
