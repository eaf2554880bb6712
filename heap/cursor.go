package heap

import (
	"errors"
	"io"

	"github.com/heapcam/heapcam/heap/match"
	"github.com/heapcam/heapcam/heap/samples"
	"github.com/heapcam/heapcam/heap/symbols"
	"github.com/heapcam/heapcam/trace"
)

// BlockSource gives the blocks of a recording, io.EOF at its end. An error that is not io.EOF is damage; the source may
// be asked again for what follows it.
type BlockSource interface {
	Next() (trace.Block, error)
}

// Reader is a Replay or a Census.
type Reader interface {
	// Next reads up to the next collection, its sync point included. It gives io.EOF at the end, *trace.TooNewError
	// when the stream is of a later format.
	Next() (*Collection, error)
	// Position gives what both have in common. It stays the reader's.
	Position() *Cursor
	// View gives what is known of the heap after the newest collection, until the next call of Next.
	View() *View
}

// Collection is one epoch as it was read.
type Collection struct {
	trace.Pause
	Spaces               []trace.Space
	Known                bool   // the state after it is known
	Partial              bool   // of the state, a part is known: that which the slices of a listing have had so far
	Synced               bool   // it has a sync point, or the last slice of one
	Slice                uint64 // of its slice, trace.SliceFirst and trace.SliceLast
	Objects, Bytes       uint64 // of the state, or of the part that is known
	Unlisted             uint64 // if partial: bytes that no slice has listed yet; the rest of the state is in them
	Used                 uint64 // bytes, all spaces, after it
	Born, Died, Promoted trace.CensusCell
	Census               []trace.CensusRow // the rows that these are sums of, by type
	LiveSamples          int
	// Of a collector whose objects have no address: the cycle and its pauses.
	Cycle        *trace.Cycle
	Stops        []trace.Stop
	SampledBytes uint64
	SyncProbe    uint64 // ns, the listing's cost
	EpochsLost   uint64 // reported by gaps before it
	// Of a collection without object data (full ones), if the state before it was known: how many objects its sync
	// point lists, and of how many the identity is proven without a sample.
	Listed, Proven uint64
}

// End is when the pause, or the cycle, was over: ns since the probe's start.
func (c *Collection) End() uint64 {
	if c.Cycle != nil {
		return max(c.Cycle.Begin, c.Cycle.End)
	}
	return c.Start + c.Dur
}

// Cursor walks over a stream, collection by collection. What happens to objects is the model's to say.
type Cursor struct {
	*Symbols
	*Samples
	Findings
	Totals Totals // of the state after the newest collection, if Known
	Known  bool
	// Partial says that a part of the state is known: a listing in slices is under way.
	Partial bool
	// First is the first collection after which the state was known, 0 if none yet; Ends gives the end of each pause,
	// ns since the probe's start.
	First uint64
	Ends  map[uint64]uint64
	// OnListing, if set, is called when a sync point gave a state and no collection belongs to it: where reading
	// starts.
	OnListing func(gc uint64)
	// OnSummary, if set, is called with each summary, the state being that after the newest collection so far.
	OnSummary func(*trace.Summary)
	// OnTold, if set, is called with each live sample whose site the bytecode has told, too (frame): two that know the
	// site of one object, of which one may be wrong.
	OnTold func(s *Sample, frame uint64)
	// OnEpoch, if set, is called with each epoch when it has been read; applied: the state, or a part of it, is known,
	// and the epoch has been applied to it. What it points to is valid until the call returns.
	OnEpoch func(e *trace.Epoch, applied bool)

	blocks  blockReader
	model   model
	gc      uint64
	pending *Collection // read, its sync point may follow
	lost    uint64      // epochs, since the newest collection
	follows bool        // the model knows the state, or a part of it
	// relisted is the newest collection whose listing gave a state that was not followed up to it, 0: none.
	relisted uint64
	matcher  match.Matcher
	sweeps   trace.Sweeps
	listing  uint64 // the newest reference listing
	listed   bool   // it has objects
	atEnd    bool   // the newest call of Next found the end of what is recorded
	// beforePause: the state before the newest epoch, which is not exact, is still there.
	beforePause bool
}

// model is what a reader keeps of the objects: all of them (Replay), or how many there are of each type (Census).
type model interface {
	// lose applies what an epoch says of those that were lost before it; false: nothing is known then.
	lose(l *trace.Lost) bool
	// apply applies an exact epoch to what is known of the state.
	apply(e *trace.Epoch) error
	// known says how much is known of the state that the model follows: all, or all but what lies in so many bytes.
	known() (all bool, unlisted uint64)
	// slice takes in a part of a listing. follows: something is known behind it. find is as for list; nil while not all
	// is listed.
	slice(s *trace.Slice) (follows bool, find attach, err error)
	// forget says that nothing is known any more.
	forget()
	// resolve puts a sample on the object at addr; false if there is none.
	resolve(addr, id, birth uint64) bool
	// site attaches sites that the bytecode has told, after collection gc at a time.
	site(sited []trace.SitedAddr, gc, time uint64)
	// list replaces the state by a sync point's listing, if it has one, and gives what looks for the objects of the
	// samples that it reports.
	list(s *trace.Sync) (attach, error)
}

// attach is the function that Samples.Adopt asks for.
type attach func(*trace.LiveSample, *Sample) bool

// blockReader gives blocks, the same one again if it is put back.
type blockReader struct {
	src  BlockSource
	back *trace.Block
}

func (r *blockReader) next() (trace.Block, error) {
	if r.back != nil {
		b := *r.back
		r.back = nil
		return b, nil
	}
	return r.src.Next()
}

func newCursor(src BlockSource, m model) Cursor {
	names := symbols.New()
	return Cursor{
		Symbols: names, Samples: samples.New(), Ends: map[uint64]uint64{},
		blocks: blockReader{src: src}, model: m, matcher: match.Matcher{Symbols: names},
	}
}

// Position gives the cursor itself: see Reader.
func (r *Cursor) Position() *Cursor { return r }

// LostSince gives how many epochs are known to be lost since the newest collection that Next gave. No collection has
// them in EpochsLost: at the end of a recording they are in addition to those.
func (r *Cursor) LostSince() uint64 { return r.lost }

// View gives the view of a reader that knows totals only.
func (r *Cursor) View() *View {
	return &View{
		Symbols: r.Symbols, Totals: r.Totals, GC: r.gc, First: r.First, Ends: r.Ends,
		Regions: r.matcher.Regions, Uncompacted: r.Uncompacted, Live: r.Live, Relisted: r.relisted,
	}
}

// maxDamage bounds the damaged blocks of a stream, after which nothing more is expected of it.
const maxDamage = 10000

// ErrPaused is what a source gives in place of io.EOF if more may follow later. Next gives io.EOF then, but holds a
// collection back whose state is not known, because its sync point may follow.
var ErrPaused = errors.New("more may follow")

// Next is Reader.Next. After io.EOF it may be called again: it continues if the source does. What was read behind the
// newest collection then belongs to the next one.
func (r *Cursor) Next() (*Collection, error) {
	if !r.atEnd {
		r.Begin()
	}
	for r.atEnd = false; ; {
		b, err := r.blocks.next()
		if err == io.EOF || err == ErrPaused {
			if err == io.EOF && r.pending != nil {
				r.listedAll()
			}
			if r.pending != nil && (err == io.EOF || r.Known) {
				return r.close(), nil
			}
			r.atEnd = true
			return nil, io.EOF
		}
		if err != nil {
			c := r.settled()
			r.Damage = append(r.Damage, err)
			r.forget()
			if c != nil {
				return c, nil
			}
			if len(r.Damage) > maxDamage {
				return nil, err
			}
			continue
		}
		if b.Kind == trace.KindGap {
			c := r.settled()
			if err := r.handle(b); err != nil {
				r.fault("%v", err)
			}
			if c != nil {
				return c, nil
			}
			continue
		}
		if r.pending != nil && b.Kind == trace.KindEpoch {
			r.blocks.back = &b
			return r.close(), nil
		}
		if err := r.handle(b); err == errLater {
			r.blocks.back = &b
			return r.close(), nil
		} else if err != nil {
			var newer *trace.TooNewError
			if errors.As(err, &newer) {
				return nil, err
			}
			r.fault("%v", err)
			if b.Kind == trace.KindEpoch || b.Kind == trace.KindSync || b.Kind == trace.KindSlice {
				r.forget()
			}
		}
	}
}

// settled gives the pending collection if its state is known, before something is read that ends the knowledge: what is
// lost later does not make it unknown. One whose state is not known waits for its sync point.
func (r *Cursor) settled() *Collection {
	if r.pending == nil || !r.Known && !r.Partial {
		return nil
	}
	return r.close()
}

// forget says that nothing is known of the state any more.
func (r *Cursor) forget() {
	r.Known, r.Partial = false, false
	if r.follows {
		r.follows = false
		r.model.forget()
	}
}

// weigh says how much is known of the state.
func (r *Cursor) weigh() {
	all := false
	if r.follows {
		all, _ = r.model.known()
	}
	r.Known, r.Partial = all, r.follows && !all
}

// listedAll takes in that a recording ends. If its newest slice has left nothing unlisted, all objects are known. What
// would follow is the slice that names the live samples alone: those that are known without it stay.
func (r *Cursor) listedAll() {
	if r.Partial {
		_, unlisted := r.model.known()
		r.Known, r.Partial = unlisted == 0, unlisted > 0
	}
}

// close completes the pending collection.
func (r *Cursor) close() *Collection {
	c := r.pending
	r.pending = nil
	c.Known, c.Partial = r.Known, r.Partial
	r.Ends[c.GC] = c.End()
	if r.Known && r.First == 0 {
		r.First = c.GC
	}
	if r.Partial {
		_, c.Unlisted = r.model.known()
	}
	if r.Known || r.Partial {
		c.Objects, c.Bytes = uint64(r.Totals.Objects()), r.Totals.Bytes()
	}
	c.LiveSamples, c.SampledBytes = r.Live.Len(), r.LiveBytes
	return c
}

// handle takes in one block.
func (r *Cursor) handle(b trace.Block) error {
	switch b.Kind {
	case trace.KindMeta:
		err := r.Meta(b)
		r.distress(b)
		r.sweeps.JVM(&r.JVM)
		return err
	case trace.KindDefs:
		return r.Define(b)
	case trace.KindSamples:
		ss, err := trace.DecodeSamples(b)
		if trace.Concurrent(r.JVM.Collector) {
			r.TakeWatched(ss, r.gc+1, r.Site)
		} else {
			r.Take(ss, r.gc+1, r.Site)
		}
		return err
	case trace.KindEpoch:
		return r.epoch(b)
	case trace.KindSync:
		return r.sync(b)
	case trace.KindSlice:
		return r.slice(b)
	case trace.KindGap:
		g, err := trace.DecodeGap(b)
		if err == nil {
			r.Gaps = append(r.Gaps, g)
			r.lost += g.Epochs
			if g.Epochs > 0 { // the next epoch may say how to do without
				r.Known, r.Partial = false, false
			}
		}
		return err
	case trace.KindEnd:
		e, err := trace.DecodeEnd(b)
		if err == nil {
			r.End = &e
		}
		return err
	case trace.KindRefs:
		r.refer(b)
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

func (r *Cursor) epoch(b trace.Block) error {
	e, err := trace.DecodeEpoch(b)
	if err != nil {
		return err
	}
	behind := r.lost > 0
	if r.gc != 0 && e.Pause.GC != r.gc+1 {
		behind = true
		r.Skip(r.gc+1, e.Pause.GC) // samples of any phase since
		if e.Pause.GC > r.gc {
			r.lost = max(r.lost, e.Pause.GC-r.gc-1) // the gap reports the same number
		}
	}
	exact := e.Pause.Flags&trace.PauseExact != 0
	switch {
	case !behind:
	case exact && r.follows && e.Lost.Since != 0 && e.Lost.Since == r.gc && r.model.lose(&e.Lost):
		r.weigh()
	default:
		r.forget()
	}
	r.gc = e.Pause.GC
	r.sweeps.Pause(&e.Pause)
	r.pending = newCollection(e, r.lost)
	r.lost = 0
	r.beforePause = false
	if !exact {
		r.beforePause = r.Known
		r.forget()
	}
	if k := e.Pause.Kind; k == trace.PauseRemark || k == trace.PauseCleanup {
		r.matcher.Swept = true
	}
	if r.follows {
		if err := r.model.apply(e); err != nil {
			r.forget()
			r.fault("collection %d: %v", r.gc, err)
		} else if !r.Known {
			r.weigh()
		}
	}
	for _, s := range e.Resolved {
		birth, ok := r.Resolve(s.ID)
		if !ok {
			birth = samples.NoBirth
		}
		if r.follows && !r.model.resolve(s.Addr, s.ID, birth) {
			r.fault("collection %d: sample %d resolved to %d, where nothing stands", r.gc, s.ID, s.Addr)
		}
	}
	if r.follows {
		r.model.site(e.Sited, e.Pause.GC, e.Pause.Start)
	}
	for _, id := range e.SampleDead {
		r.Die(id)
	}
	r.Forsake(e.Unwatched)
	for _, id := range e.Survived {
		r.Survive(id)
	}
	if e.Pause.Flags&trace.PauseEdenKept == 0 {
		r.EmptyEden(len(e.Resolved)+len(e.SampleDead) > 0)
		r.matcher.Eden = false
	}
	if r.follows { // of an inexact epoch the listing needs the regions before
		r.matcher.Regions = e.Regions
	}
	if r.OnEpoch != nil {
		r.OnEpoch(e, r.follows)
	}
	return nil
}

func newCollection(e *trace.Epoch, lost uint64) *Collection {
	c := &Collection{Pause: e.Pause, Spaces: e.Spaces, Census: e.Census, EpochsLost: lost}
	if e.HasCycle {
		c.Cycle, c.Stops = &e.Cycle, e.Stops
	}
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
	return c
}

// errLater says that the pending collection is complete before this block is read.
var errLater = errors.New("not of this collection")

func (r *Cursor) sync(b trace.Block) error {
	s, err := trace.DecodeSync(b)
	if err != nil {
		return err
	}
	c := r.pending
	if c != nil && s.GC != c.GC {
		return errLater
	}
	if r.gc != 0 && s.GC != r.gc { // the epoch that it belongs to is missing
		r.forget()
		r.beforePause = false
		if s.GC > r.gc {
			r.lost = max(r.lost, s.GC-r.gc)
		}
	}
	r.matcher.Spaces = nil
	if c != nil {
		c.Synced, c.SyncProbe = true, s.Probe
		r.matcher.Spaces = c.Spaces
	}
	fresh := !r.Known
	find, err := r.model.list(s)
	if err != nil {
		return err
	}
	if trace.Concurrent(r.JVM.Collector) {
		r.AdoptWatched(s, r.Site)
		return nil
	}
	if len(s.Lists) == 0 { // depth samples: sites only
		r.Adopt(s.Samples, r.Site, func(l *trace.LiveSample, x *Sample) bool { find(l, x); return true })
		return nil
	}
	if n, b := uint64(r.Totals.Objects()), r.Totals.Bytes(); n != s.Objects || b != s.Bytes {
		r.fault("sync point at collection %d: total says %d objects, %d bytes; listed are %d, %d", s.GC, s.Objects,
			s.Bytes, n, b)
	}
	r.Known, r.Partial, r.follows, r.gc, r.beforePause = true, false, true, s.GC, false
	if fresh {
		r.relisted = s.GC
	}
	r.sweeps.Listed()
	r.Uncompacted = r.Uncompacted || s.Flags&trace.SyncUncompacted != 0
	r.matcher.Eden, r.matcher.Swept, r.matcher.Regions = s.Flags&trace.SyncEdenListed != 0, false, s.Regions
	r.Adopt(s.Samples, r.Site, find)
	r.model.site(s.Sited, s.GC, s.Time)
	if c == nil && r.OnListing != nil {
		r.OnListing(s.GC)
	}
	return nil
}
