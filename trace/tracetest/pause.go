package tracetest

import (
	"slices"

	"github.com/heapcam/heapcam/trace"
)

// segment is a range that a collection has evacuated, with the objects that were in it by address.
type segment struct {
	start, words uint64
	objs         []*obj
	eden         bool
}

// plan is what a collection does: filled by the memory, written down by pause. When pause gets it, survivors have moved
// (addr, Space) and from holds where each was.
type plan struct {
	segs    []segment
	from    map[*obj]uint64
	fillers []*obj
	freed   []trace.Range
	frees   []*obj // what was in freed
}

// finish is a pause that is being written down: what the collection did, what the state makes of it, and the event.
type finish struct {
	*Model
	kind   uint64
	sure   bool // no rare event strikes
	pl     plan
	pause  trace.Pause
	e      *trace.Epoch
	ep     *Epoch
	before []trace.Space

	dropped, fault bool
	evac           uint64 // trace.PauseEvacFailed, or 0

	allocs, moves       *trace.WalkEncoder
	census              map[[2]uint64]*trace.CensusRow
	uncounted           map[[2]uint64]*trace.UncountedRow
	moved, born, births []*obj
}

// pause ends the phase with a pause of that kind and writes all of it down. Unless sure, rare events may strike.
func (m *Model) pause(kind uint64, sure bool) *Epoch {
	f := m.start(kind, sure)
	f.collect()
	f.loseFirst()
	// The truth first: who is known now, who died.
	for _, s := range f.pl.segs {
		f.walk(s)
		f.roll.src.Evacuated(trace.Range{Start: s.start, Words: s.words})
	}
	f.enterAll()
	f.record()
	f.carry()
	sync := f.decideSync()
	if f.dropped {
		f.drop()
	} else {
		f.write(sync)
		f.ep.Known = !m.lost
	}
	f.ep.State = m.state()
	f.ep.Unknown, f.ep.Uncounted = m.roll.src.Unknown.Clone(), m.roll.src.Uncounted.Clone()
	return f.ep
}

// start takes over what the phase has gathered.
func (m *Model) start(kind uint64, sure bool) *finish {
	m.gc++
	f := &finish{
		Model: m, kind: kind, sure: sure, pl: plan{from: map[*obj]uint64{}}, e: &trace.Epoch{},
		ep:     &Epoch{Allocated: m.allocated, AllocatedBytes: m.bytes, Samples: m.samples},
		allocs: trace.NewWalkEncoder(m.types), moves: trace.NewWalkEncoder(m.types),
		census: m.roll.census, uncounted: m.roll.uncounted,
	}
	if f.census == nil {
		f.census = map[[2]uint64]*trace.CensusRow{}
	}
	if f.uncounted == nil {
		f.uncounted = map[[2]uint64]*trace.UncountedRow{}
	}
	m.allocated, m.bytes, m.samples = 0, 0, nil
	if kind != trace.PauseWalk {
		m.jvmGC++
	}
	f.pause = trace.Pause{
		GC: m.gc, Kind: kind, Flags: trace.PauseExact, Depth: m.cfg.Depth, Start: m.now,
		Dur:   1000 + m.r.Uint64N(m.cfg.Longest),
		JVMGC: m.jvmGC, PhaseStart: m.lastFinish, Cause: "Allocation Failure", Interval: m.jvm.Interval,
	}
	f.pause.Probe = f.pause.Dur / 4
	m.now += f.pause.Dur
	m.lastFinish = m.now
	f.before = m.mem.spaces()
	return f
}

// collect draws the rare events and has the memory collect.
func (f *finish) collect() {
	draw := f.r.Float64()
	f.dropped = !f.sure && draw < f.cfg.Drop
	f.fault = !f.sure && !f.dropped && draw < f.cfg.Drop+f.cfg.Fault
	switch f.kind {
	case trace.PauseYoung, trace.PauseMixed:
		fail := f.cfg.Collector == trace.CollectorG1 && f.r.Float64() < f.cfg.EvacFail
		if f.mem.young(&f.pl, f.kind == trace.PauseMixed, fail) {
			f.evac = trace.PauseEvacFailed
		}
	case trace.PauseFull:
		f.mem.full(&f.pl)
	default:
		f.pause.Flags |= trace.PauseEdenKept
		if f.kind != trace.PauseWalk {
			f.sweep()
		}
	}
}

// sweep is what a Remark or a Cleanup does.
func (f *finish) sweep() {
	if f.kind == trace.PauseCleanup {
		f.mem.scrub(true)
	}
	f.mem.sweep(&f.pl)
	if f.kind != trace.PauseRemark || !f.cfg.Scrub {
		return
	}
	for _, o := range f.mem.mark() { // the JVM clears what refers to them weakly
		if o.Sample != 0 {
			f.e.SampleDead = append(f.e.SampleDead, o.Sample)
			o.Sample = 0
		}
	}
}

// walk walks over a segment: its objects move or die.
func (f *finish) walk(s segment) {
	enc := f.moves
	if s.eden && f.cfg.Depth == trace.DepthFull {
		enc = f.allocs
	}
	listed := enc == f.allocs || slices.ContainsFunc(s.objs, func(o *obj) bool { return o.in }) || !s.eden
	if listed {
		enc.Begin(s.start, s.words)
	}
	for _, o := range s.objs {
		at, survives := f.pl.from[o]
		if !survives {
			at = o.addr
			f.die(o, at)
			if enc == f.allocs {
				enc.SkipTo(at)
				enc.Dead(o.Type, o.Length)
			}
			continue
		}
		if o.in {
			delete(f.known, at)
			if o.Space == trace.SpaceOld && !f.mem.wasOld(at) {
				f.count(o, trace.Bucket1, trace.CensusPromoted) // the probe does not read the header again
			}
			if f.roll.src.Uncounted.Has(at) {
				f.countUncounted(o, false)
			}
			f.moved = append(f.moved, o)
		} else {
			f.born = append(f.born, o)
		}
		o.Age++
		if enc == f.allocs || o.in && !f.hidden(at) {
			enc.SkipTo(at)
			enc.Move(o.Type, o.Length, o.addr)
		}
	}
	if listed {
		enc.End()
	}
}

// count adds an object to a cell of the census.
func (f *finish) count(o *obj, bucket uint64, cell int) {
	k := [2]uint64{uint64(o.Type), bucket}
	if f.census[k] == nil {
		f.census[k] = &trace.CensusRow{Type: k[0], Bucket: k[1]}
	}
	f.census[k].Cells[cell].Objects++
	f.census[k].Cells[cell].Bytes += o.Words * 8
}

// die takes an object out of the state.
func (f *finish) die(o *obj, at uint64) {
	if o.in {
		delete(f.known, at)
		o.in = false
		f.ep.Died = append(f.ep.Died, o.Object)
		if o.Sample != 0 {
			f.e.SampleDead = append(f.e.SampleDead, o.Sample)
		}
		switch {
		case f.roll.src.Uncounted.Has(at) && f.cfg.Naive != NaiveCensus:
			f.countUncounted(o, true)
		case o.Space == trace.SpaceSurvivor || o.Space == trace.SpaceEden:
			f.count(o, trace.Bucket(o.Age), trace.CensusDiedYoung)
		default:
			f.count(o, trace.BucketOld, trace.CensusDiedOld)
		}
	}
	delete(f.unresolved, o.Sample)
}

// enter puts an object into the state.
func (f *finish) enter(o *obj) {
	o.in, o.Entered = true, f.gc
	f.known[o.addr] = o
	if o.Sample != 0 {
		f.e.Resolved = append(f.e.Resolved, trace.SampleAddr{ID: o.Sample, Addr: o.addr})
		delete(f.unresolved, o.Sample)
	}
	switch o.Space {
	case trace.SpaceSurvivor, trace.SpaceEden:
		f.count(o, trace.Bucket(o.Age), trace.CensusBornYoung)
	default:
		f.count(o, trace.BucketOld, trace.CensusBornOld)
	}
}

// enterAll ends what lay in freed ranges, and brings the state up to date with what moved and what was born.
func (f *finish) enterAll() {
	for _, o := range f.pl.frees {
		f.die(o, o.addr)
	}
	for _, r := range f.pl.freed {
		f.roll.src.Evacuated(r)
	}
	for _, o := range f.moved {
		f.known[o.addr] = o
	}
	f.births = slices.Clone(f.pl.fillers)
	for _, o := range f.direct { // a full collection has them in its segments
		if f.kind != trace.PauseFull && !slices.Contains(f.pl.frees, o) {
			f.births = append(f.births, o)
		}
	}
	f.direct = nil
	for _, o := range f.births {
		if _, done := f.known[o.addr]; done {
			panic("tracetest: two objects at one address")
		}
	}
	for _, o := range f.births {
		f.enter(o)
	}
	for _, o := range f.born {
		f.enter(o)
	}
	if f.cfg.Depth != trace.DepthFull {
		f.births = append(f.births, f.born...)
	}
}

// record fills the event: what the pause says of the collection.
func (f *finish) record() {
	if f.owe == 0 || f.owe == trace.SyncRotation {
		switch {
		case f.kind == trace.PauseFull:
			f.owe = trace.SyncFull
		case f.evac != 0:
			f.owe = trace.SyncEvacFailed
		case f.fault:
			f.owe = trace.SyncFault
		}
	}
	e := f.e
	if !f.exact() {
		f.pause.Flags = f.pause.Flags&^trace.PauseExact | f.evac
		if f.fault {
			f.pause.Flags |= trace.PauseFault
		}
		f.lost = true
	} else {
		f.recordObjects()
	}
	f.hush()
	slices.SortFunc(e.Resolved, func(a, b trace.SampleAddr) int { return cmp(a.ID, b.ID) })
	slices.Sort(e.SampleDead)
	e.Regions = f.mem.regions()
	e.Spaces = f.mem.spaces()
	for i := range e.Spaces {
		e.Spaces[i].UsedBefore = f.before[i].UsedAfter
	}
}

// hush keeps back what became of samples, or says what was kept back.
func (f *finish) hush() {
	e, died := f.e, f.e.SampleDead[:0]
	for _, id := range e.SampleDead {
		if f.untold[id] == nil {
			died = append(died, id)
		}
		delete(f.untold, id) // nobody will hear of it
	}
	e.SampleDead = died
	switch {
	case f.fault && f.cfg.Forget > 0 && f.r.Float64() < f.cfg.Forget:
		e.Resolved, e.SampleDead = nil, nil
	case f.cfg.Quiet > 0 && f.r.Float64() < f.cfg.Quiet:
		for _, r := range e.Resolved {
			f.untold[r.ID] = f.known[r.Addr]
		}
		f.untoldDead = append(f.untoldDead, e.SampleDead...)
		e.Resolved, e.SampleDead = nil, nil
	default:
		for id, o := range f.untold {
			e.Resolved = append(e.Resolved, trace.SampleAddr{ID: id, Addr: o.addr})
		}
		clear(f.untold)
		e.SampleDead = append(e.SampleDead, f.untoldDead...)
		f.untoldDead = nil
	}
}

// recordObjects writes moves, births, freed ranges and the census of a pause whose objects could be read.
func (f *finish) recordObjects() {
	e := f.e
	e.Allocs, e.Moves = blobOf(f.allocs), blobOf(f.moves)
	slices.SortFunc(f.births, func(a, b *obj) int { return cmp(a.addr, b.addr) })
	if len(f.births) > 0 {
		enc := trace.NewListEncoder(f.types)
		for _, o := range f.births {
			enc.Object(o.addr, o.Type, o.Length)
		}
		must(enc.Err())
		e.Births = [][]byte{enc.Bytes()}
	}
	e.Freed = f.pl.freed
	for _, r := range f.census {
		e.Census = append(e.Census, *r)
	}
	slices.SortFunc(e.Census, func(a, b trace.CensusRow) int {
		if a.Type != b.Type {
			return cmp(a.Type, b.Type)
		}
		return cmp(a.Bucket, b.Bucket)
	})
	f.recordUncounted()
}

// decideSync says whether a sync point follows. A fault may leave it to the next collection, as may a pause that
// answers none.
func (f *finish) decideSync() bool {
	sync := f.cfg.Slice == 0 && f.owe != 0 && f.kind != trace.PauseRemark && f.kind != trace.PauseCleanup
	if f.fault && f.kind != trace.PauseFull && f.r.IntN(2) == 0 {
		return false
	}
	return sync
}

// drop loses the epoch: a gap is all that is written.
func (f *finish) drop() {
	ep := f.ep
	if f.cfg.Slice == 0 || !f.roll.src.Follows() {
		f.owe = trace.SyncLost
	}
	f.lost, ep.Dropped = true, true
	ep.Blocks = []trace.Block{trace.EncodeGap(trace.Gap{
		Reason: trace.GapOverflow, Epochs: 1, Samples: uint64(len(ep.Samples)), Time: f.now,
	})}
	// The samples are lost with it: a later listing cannot name them.
	for _, s := range ep.Samples {
		if o := f.unresolved[s.ID]; o != nil {
			o.Sample = 0
			delete(f.unresolved, s.ID)
		}
	}
	for _, r := range f.e.Resolved {
		for _, s := range ep.Samples {
			if s.ID == r.ID {
				f.known[r.Addr].Sample = 0
			}
		}
	}
	ep.Samples = nil
}

// write seals the blocks of the epoch, and those of the sync point that follows it.
func (f *finish) write(sync bool) {
	ep := f.ep
	if sync {
		f.pause.Flags |= trace.PauseSyncFollows
	}
	f.e.Pause, ep.Pause = f.pause, f.pause
	if f.seq == 0 {
		ep.Blocks = append(ep.Blocks, f.seal(f.Meta()))
	}
	for _, s := range ep.Samples {
		f.given[s.ID] = s
	}
	if sync && f.kind == trace.PauseWalk && f.cfg.Depth == trace.DepthFull {
		f.enterEden(f.gc) // the listing shows what the program has in eden
	}
	ep.Blocks = append(ep.Blocks, f.flushDefs()...)
	if len(ep.Samples) > 0 {
		ep.Blocks = append(ep.Blocks, f.seal(trace.EncodeSamples(ep.Samples)))
	}
	b := trace.EncodeEpoch(f.e)
	ep.Blocks = append(ep.Blocks, f.sealAs(b, b.Version))
	if sync {
		ep.Blocks = append(ep.Blocks, f.seal(f.sync(f.kind)))
		ep.Synced, f.lost, f.owe = true, false, 0
	}
	if f.cfg.Slice > 0 && !f.fault {
		f.writeSlice()
	}
}

// enterEden puts all of eden into the state; the listing of a walk holds the dead ones too.
func (m *Model) enterEden(gc uint64) {
	for _, o := range m.eden {
		if !o.in {
			o.in, o.Entered = true, gc
			m.known[o.addr] = o
			delete(m.unresolved, o.Sample)
		}
	}
}

// sync lists the state.
func (m *Model) sync(kind uint64) trace.Block {
	s := &trace.Sync{GC: m.gc, Reason: m.owe, Time: m.now, Probe: 500, Spaces: m.mem.spaces(), Regions: m.mem.regions()}
	if m.owe == trace.SyncFirst {
		s.Flags |= trace.SyncFirstOfSession
	}
	enc := trace.NewListEncoder(m.types)
	live := func(o *obj) {
		if x, ok := m.given[o.Sample]; ok && m.untold[o.Sample] == nil {
			s.Samples = append(s.Samples, trace.LiveSample{
				ID: x.ID, Addr: o.addr, Frame: x.Frame, Thread: x.Thread, Birth: o.Born,
				Interval: x.Interval, Size: x.Size,
			})
		}
	}
	for _, o := range m.sorted() {
		enc.Object(o.addr, o.Type, o.Length)
		s.Objects++
		s.Bytes += o.Words * 8
		if o.Space == trace.SpaceEden {
			s.Flags |= trace.SyncEdenListed
		}
		live(o)
	}
	if kind == trace.PauseWalk {
		for _, o := range m.eden { // samples of eden, whether or not it is listed
			if !o.in && o.Sample != 0 {
				live(o)
			}
		}
	}
	must(enc.Err())
	if b := enc.Bytes(); len(b) > 0 {
		s.Lists = [][]byte{b}
	}
	slices.SortFunc(s.Samples, func(a, b trace.LiveSample) int { return cmp(a.ID, b.ID) })
	return trace.EncodeSync(s)
}

func (m *Model) state() map[uint64]Object {
	out := make(map[uint64]Object, len(m.known))
	for a, o := range m.known {
		out[a] = o.Object
	}
	return out
}

func blobOf(e *trace.WalkEncoder) [][]byte {
	must(e.Err())
	if len(e.Bytes()) == 0 {
		return nil
	}
	return [][]byte{e.Bytes()}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
