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

// pause ends the phase with a pause of that kind and writes all of it down. Unless sure, rare events may strike.
func (m *Model) pause(kind uint64, sure bool) *Epoch {
	m.gc++
	gc := m.gc
	ep := &Epoch{Allocated: m.allocated, AllocatedBytes: m.bytes, Samples: m.samples}
	m.allocated, m.bytes, m.samples = 0, 0, nil
	if kind != trace.PauseWalk {
		m.jvmGC++
	}
	p := trace.Pause{
		GC: gc, Kind: kind, Flags: trace.PauseExact, Depth: m.cfg.Depth, Start: m.now, Dur: 1000 + m.r.Uint64N(1e6),
		JVMGC:      m.jvmGC,
		PhaseStart: m.lastFinish, Cause: "Allocation Failure", Interval: m.jvm.Interval,
	}
	p.Probe = p.Dur / 4
	m.now += p.Dur
	m.lastFinish = m.now
	before := m.mem.spaces()

	fate := m.r.Float64()
	dropped := !sure && fate < m.cfg.Drop
	fault := !sure && !dropped && fate < m.cfg.Drop+m.cfg.Fault
	evac := uint64(0)
	moving := kind == trace.PauseYoung || kind == trace.PauseMixed
	var pl plan
	pl.from = map[*obj]uint64{}
	switch {
	case moving:
		fail := m.cfg.Collector == trace.CollectorG1 && m.r.Float64() < m.cfg.EvacFail
		if m.mem.young(&pl, kind == trace.PauseMixed, fail) {
			evac = trace.PauseEvacFailed
		}
	case kind == trace.PauseFull:
		m.mem.full(&pl)
	default:
		p.Flags |= trace.PauseEdenKept
		if kind != trace.PauseWalk {
			m.mem.sweep(&pl)
		}
	}

	// The truth first: who is known now, who died.
	e := &trace.Epoch{}
	census := map[[2]uint64]*trace.CensusRow{}
	cell := func(o *obj, bucket uint64, i int) {
		k := [2]uint64{uint64(o.Type), bucket}
		if census[k] == nil {
			census[k] = &trace.CensusRow{Type: k[0], Bucket: k[1]}
		}
		census[k].Cells[i].Objects++
		census[k].Cells[i].Bytes += o.Words * 8
	}
	allocs, moves := trace.NewWalkEncoder(m.types), trace.NewWalkEncoder(m.types)
	die := func(o *obj, at uint64) {
		if o.in {
			delete(m.known, at)
			o.in = false
			ep.Died = append(ep.Died, o.Object)
			if o.Sample != 0 {
				e.SampleDead = append(e.SampleDead, o.Sample)
			}
			if o.Space == trace.SpaceSurvivor || o.Space == trace.SpaceEden {
				cell(o, trace.Bucket(o.Age), trace.CensusDiedYoung)
			} else {
				cell(o, trace.BucketOld, trace.CensusDiedOld)
			}
		}
		delete(m.unresolved, o.Sample)
	}
	var moved, born []*obj
	for _, s := range pl.segs {
		enc := moves
		if s.eden && m.cfg.Depth == trace.DepthFull {
			enc = allocs
		}
		listed := enc == allocs || slices.ContainsFunc(s.objs, func(o *obj) bool { return o.in }) || !s.eden
		if listed {
			enc.Begin(s.start, s.words)
		}
		for _, o := range s.objs {
			at, survives := pl.from[o]
			if !survives {
				at = o.addr
				die(o, at)
				if enc == allocs {
					enc.SkipTo(at)
					enc.Dead(o.Type, o.Length)
				}
				continue
			}
			if o.in {
				delete(m.known, at)
				if o.Space == trace.SpaceOld && !m.mem.wasOld(at) {
					cell(o, trace.Bucket1, trace.CensusPromoted) // the probe does not read the header again
				}
				moved = append(moved, o)
			} else {
				born = append(born, o)
			}
			o.Age++
			if enc == allocs || o.in {
				enc.SkipTo(at)
				enc.Move(o.Type, o.Length, o.addr)
			}
		}
		if listed {
			enc.End()
		}
	}
	for _, o := range pl.frees {
		die(o, o.addr)
	}
	for _, o := range moved {
		m.known[o.addr] = o
	}
	births := slices.Clone(pl.fillers)
	for _, o := range m.direct { // a full collection has them in its segments
		if kind != trace.PauseFull && !slices.Contains(pl.frees, o) {
			births = append(births, o)
		}
	}
	m.direct = nil
	for _, o := range births {
		if _, done := m.known[o.addr]; done {
			panic("tracetest: two objects at one address")
		}
	}
	enter := func(o *obj) {
		o.in, o.Entered = true, gc
		m.known[o.addr] = o
		if o.Sample != 0 {
			e.Resolved = append(e.Resolved, trace.SampleAddr{ID: o.Sample, Addr: o.addr})
			delete(m.unresolved, o.Sample)
		}
		switch o.Space {
		case trace.SpaceSurvivor, trace.SpaceEden:
			cell(o, trace.Bucket(o.Age), trace.CensusBornYoung)
		default:
			cell(o, trace.BucketOld, trace.CensusBornOld)
		}
	}
	for _, o := range births {
		enter(o)
	}
	for _, o := range born {
		enter(o)
	}
	if m.cfg.Depth != trace.DepthFull {
		births = append(births, born...)
	}
	// What the pause says of it.
	if m.owe == 0 || m.owe == trace.SyncRotation {
		switch {
		case kind == trace.PauseFull:
			m.owe = trace.SyncFull
		case evac != 0:
			m.owe = trace.SyncEvacFailed
		case fault:
			m.owe = trace.SyncFault
		}
	}
	if kind == trace.PauseFull || evac != 0 || fault {
		p.Flags = p.Flags&^trace.PauseExact | evac
		if fault {
			p.Flags |= trace.PauseFault
		}
		m.lost = true
	} else {
		e.Allocs, e.Moves = blobOf(allocs), blobOf(moves)
		slices.SortFunc(births, func(a, b *obj) int { return cmp(a.addr, b.addr) })
		if len(births) > 0 {
			enc := trace.NewListEncoder(m.types)
			for _, o := range births {
				enc.Object(o.addr, o.Type, o.Length)
			}
			must(enc.Err())
			e.Births = [][]byte{enc.Bytes()}
		}
		e.Freed = pl.freed
		for _, r := range census {
			e.Census = append(e.Census, *r)
		}
		slices.SortFunc(e.Census, func(a, b trace.CensusRow) int {
			if a.Type != b.Type {
				return cmp(a.Type, b.Type)
			}
			return cmp(a.Bucket, b.Bucket)
		})
	}
	slices.SortFunc(e.Resolved, func(a, b trace.SampleAddr) int { return cmp(a.ID, b.ID) })
	slices.Sort(e.SampleDead)
	e.Regions = m.mem.regions()
	e.Spaces = m.mem.spaces()
	for i := range e.Spaces {
		e.Spaces[i].UsedBefore = before[i].UsedAfter
	}

	// A fault may leave the sync point to the next collection, as may a pause that answers none.
	sync := m.owe != 0 && kind != trace.PauseRemark && kind != trace.PauseCleanup
	if fault && kind != trace.PauseFull && m.r.IntN(2) == 0 {
		sync = false
	}
	if dropped {
		m.owe, m.lost = trace.SyncLost, true
		ep.Dropped = true
		ep.Blocks = []trace.Block{trace.EncodeGap(trace.Gap{
			Reason: trace.GapOverflow, Epochs: 1, Samples: uint64(len(ep.Samples)), Time: m.now,
		})}
		// The samples are lost with it: a later listing can not name them.
		for _, s := range ep.Samples {
			if o := m.unresolved[s.ID]; o != nil {
				o.Sample = 0
				delete(m.unresolved, s.ID)
			}
		}
		for _, r := range e.Resolved {
			for _, s := range ep.Samples {
				if s.ID == r.ID {
					m.known[r.Addr].Sample = 0
				}
			}
		}
		ep.Samples = nil
		ep.State = m.state()
		return ep
	}
	if sync {
		p.Flags |= trace.PauseSyncFollows
	}
	e.Pause, ep.Pause = p, p
	if m.seq == 0 {
		b := m.Meta()
		ep.Blocks = append(ep.Blocks, m.seal(b))
	}
	for _, s := range ep.Samples {
		m.given[s.ID] = s
	}
	if sync && kind == trace.PauseWalk && m.cfg.Depth == trace.DepthFull {
		m.enterEden(gc) // the listing shows what the program has in eden
	}
	ep.Blocks = append(ep.Blocks, m.flushDefs()...)
	if len(ep.Samples) > 0 {
		ep.Blocks = append(ep.Blocks, m.seal(trace.EncodeSamples(ep.Samples)))
	}
	ep.Blocks = append(ep.Blocks, m.seal(trace.EncodeEpoch(e)))
	if sync {
		ep.Blocks = append(ep.Blocks, m.seal(m.sync(kind)))
		ep.Synced, m.lost, m.owe = true, false, 0
	}
	ep.Known = !m.lost
	ep.State = m.state()
	return ep
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
		if x, ok := m.given[o.Sample]; ok {
			s.Samples = append(s.Samples, trace.LiveSample{
				ID: x.ID, Addr: o.addr, Frame: x.Frame, Thread: x.Thread, Birth: o.Born, Interval: x.Interval, Size: x.Size,
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
