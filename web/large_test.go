package web_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// recordingOf is the size of a synthetic recording. Old space holds objects from the start. The survivors move with
// each collection between two spaces: a tenth of them dies, one in a hundred is promoted, and as many are born. Each
// sync point begins a file. At depth full each collection also records the objects that died in eden: youngDead for
// each one that survived it.
type recordingOf struct {
	objects, survivors, collections, listings, sites int
	full                                             bool
}

// youngDead is how many objects die in eden for each one that survives it.
const youngDead = 6

// The addresses of the spaces, in words.
const (
	largeOld   = 1 << 26
	largeEnd   = 1 << 28
	largeYoung = 1 << 22
	largeHalf  = 1 << 24
	mainThread = 1
)

type largeObject struct {
	typ    uint32
	length uint64
	words  uint64
	addr   uint64
	sample uint64
	age    uint64 // collections that it has survived
}

// make writes the recording to a ring folder.
func (l recordingOf) make(t testing.TB, dir string) {
	t.Helper()
	m := &largeMaker{recordingOf: l, t: t, rng: rand.New(rand.NewPCG(7, 7)), types: trace.NewTypeTable(8),
		live: map[uint64]trace.LiveSample{}, top: largeOld, from: largeYoung, to: largeYoung + largeHalf}
	head := m.head()
	m.open(dir)
	m.fillOld()
	m.file(append(head, m.epoch(1, &trace.Epoch{}, 0), m.sync(1)), 1)
	var payload []byte
	for gc := uint64(2); gc <= uint64(l.collections); gc++ {
		for _, b := range m.collect(gc) {
			payload = trace.AppendBlock(payload, b)
		}
		listing := gc%uint64(l.collections/l.listings) == 0
		if listing || gc%20 == 0 || gc == uint64(l.collections) {
			frame := ringstore.FrameInfo{Source: gc, FirstGC: gc - 1, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}
			if err := m.store.Append(payload, frame); err != nil {
				t.Fatal(err)
			}
			payload = payload[:0]
		}
		if listing && gc < uint64(l.collections) { // a sync point begins a file
			m.file(append(head, m.sync(gc)), gc)
		}
	}
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
}

// largeInterval is the sampling interval in bytes.
const largeInterval = 512 << 10

// largeMaker writes a synthetic recording.
type largeMaker struct {
	recordingOf
	t        testing.TB
	rng      *rand.Rand
	types    *trace.TypeTable
	store    *ringstore.Store
	live     map[uint64]trace.LiveSample
	next     uint64   // the newest sample
	old      []uint32 // type and length of the objects in old space, by address
	oldBytes uint64
	top      uint64 // of old space
	young    []largeObject
	from, to uint64 // the survivor spaces
	census   map[[2]uint64]*trace.CensusRow
}

// count adds o to a cell of the collection's census.
func (m *largeMaker) count(o largeObject, bucket uint64, cell int) {
	k := [2]uint64{uint64(o.typ), bucket}
	if m.census[k] == nil {
		m.census[k] = &trace.CensusRow{Type: k[0], Bucket: k[1]}
	}
	m.census[k].Cells[cell].Objects++
	m.census[k].Cells[cell].Bytes += o.words * 8
}

func (m *largeMaker) depth() uint64 {
	if m.full {
		return trace.DepthFull
	}
	return trace.DepthSurvivors
}

// head returns the first blocks of each file, and defines the types.
func (m *largeMaker) head() []trace.Block {
	var defs trace.Defs
	for i := range uint64(300) {
		ty := trace.Type{ID: i + 1, Size: 16 + 8*(i%6), Name: fmt.Sprintf("com/shop/part%d/Class%d", i%17, i)}
		if i%10 == 9 {
			ty = trace.Type{ID: i + 1, Flags: trace.TypeArray, Size: 16, Log2: i % 4,
				Name: "[" + string("BIJC"[i/10%4])}
		}
		defs.Types = append(defs.Types, ty)
	}
	if err := m.types.DefineAll(defs.Types); err != nil {
		m.t.Fatal(err)
	}
	for i := range uint64(5000) {
		defs.Methods = append(defs.Methods,
			trace.Method{ID: i + 1, Class: fmt.Sprintf("Lcom/shop/part%d/Class%d;", i%17, i%997),
				Name: fmt.Sprintf("method%d", i), Sig: "()V", File: "Shop.java",
				Lines: []trace.LineEntry{{BCI: 0, Line: int(i%900) + 1}}})
	}
	for i := range uint64(500) { // callers
		defs.Frames = append(defs.Frames, trace.Frame{ID: i + 1, Method: i%5000 + 1})
	}
	for i := range uint64(m.sites) {
		defs.Frames = append(defs.Frames, trace.Frame{ID: 501 + i, Parent: i%500 + 1, Method: i%5000 + 1})
	}
	defs.Threads = []trace.Thread{{ID: mainThread, Name: "main"}}
	jvm := trace.JVM{ABI: 1, Major: 17, Collector: trace.CollectorParallel, Align: 8, Depth: m.depth(),
		Interval: largeInterval, MaxHeap: 4 << 30, T0WallMS: 1_790_000_000_000, Session: strings.Repeat("ab", 16),
		VM: "a VM"}
	return []trace.Block{trace.EncodeMeta(trace.Meta{HasJVM: true, JVM: jvm}), trace.EncodeDefs(defs)}
}

func (m *largeMaker) open(dir string) {
	var err error
	m.store, _, err = ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 8 << 30, Compression: ringstore.None},
		ringstore.Identity{Session: strings.Repeat("ab", 16), Name: filepath.Base(dir)})
	if err != nil {
		m.t.Fatal(err)
	}
}

// file begins a file at collection gc with blocks.
func (m *largeMaker) file(blocks []trace.Block, gc uint64) {
	var payload []byte
	for _, b := range blocks {
		payload = trace.AppendBlock(payload, b)
	}
	frame := ringstore.FrameInfo{Source: gc, FirstGC: gc, LastGC: gc, T0: gc * 1e8, T1: gc * 1e8}
	if err := m.store.Rotate(payload, frame); err != nil {
		m.t.Fatal(err)
	}
}

// draw returns a random object.
func (m *largeMaker) draw() (o largeObject) {
	o.typ = uint32(1 + m.rng.IntN(1+m.rng.IntN(300)))
	if m.types.HasLength(uint64(o.typ)) {
		o.length = uint64(m.rng.IntN(1 + m.rng.IntN(100)))
	}
	o.words, _ = m.types.Words(uint64(o.typ), o.length)
	return o
}

// promote adds o to old space and returns its address.
func (m *largeMaker) promote(o largeObject) uint64 {
	at := m.top
	m.old = append(m.old, o.typ<<16|uint32(o.length))
	m.top += o.words
	m.oldBytes += o.words * 8
	return at
}

// fillOld makes the objects that exist from the start.
func (m *largeMaker) fillOld() {
	every := max(m.objects/(2*m.sites), 1)
	for i := range m.objects {
		o := m.draw()
		if at := m.promote(o); i%every == 0 {
			m.sample(o, at, 1)
		}
	}
}

// sample makes a new live sample at an address.
func (m *largeMaker) sample(o largeObject, at, birth uint64) trace.LiveSample {
	m.next++
	x := trace.LiveSample{ID: m.next, Addr: at, Frame: 501 + m.next%uint64(m.sites), Thread: mainThread, Birth: birth,
		Interval: largeInterval, Size: o.words * 8}
	m.live[m.next] = x
	return x
}

// sync makes a sync point.
func (m *largeMaker) sync(gc uint64) trace.Block {
	s := &trace.Sync{GC: gc, Reason: trace.SyncRotation}
	if gc == 1 {
		s.Reason = trace.SyncFirst
	}
	list := trace.NewListEncoder(m.types)
	for _, o := range m.young {
		list.Object(o.addr, o.typ, o.length)
		s.Objects++
		s.Bytes += o.words * 8
	}
	at := uint64(largeOld)
	for _, o := range m.old {
		typ, length := o>>16, uint64(o&0xffff)
		list.Object(at, typ, length)
		w, _ := m.types.Words(uint64(typ), length)
		at += w
		s.Objects++
		s.Bytes += w * 8
	}
	s.Lists = [][]byte{list.Bytes()}
	for _, x := range m.live {
		s.Samples = append(s.Samples, x)
	}
	slices.SortFunc(s.Samples, func(a, b trace.LiveSample) int { return cmp.Compare(a.ID, b.ID) })
	return trace.EncodeSync(s)
}

// epoch completes e; used is the size of the survivors in bytes.
func (m *largeMaker) epoch(gc uint64, e *trace.Epoch, used uint64) trace.Block {
	e.Pause = trace.Pause{GC: gc, JVMGC: gc, Kind: trace.PauseYoung, Flags: trace.PauseExact,
		Depth: m.depth(), Start: gc * 1e8, Dur: 5e6, Probe: 2e5, PhaseStart: gc*1e8 - 9e7,
		Cause: "Allocation Failure", Interval: largeInterval}
	e.Spaces = []trace.Space{
		{Kind: trace.SpaceEden, Bottom: 0, Top: 0, End: largeYoung, UsedBefore: 30 << 20},
		{Kind: trace.SpaceSurvivor, Bottom: m.to, Top: m.to + largeHalf, End: m.to + largeHalf, UsedBefore: used,
			UsedAfter: used},
		{Kind: trace.SpaceOld, Bottom: largeOld, Top: m.top, End: largeEnd, UsedBefore: m.oldBytes,
			UsedAfter: m.oldBytes},
	}
	return trace.EncodeEpoch(e)
}

// collect returns the blocks of collection gc.
func (m *largeMaker) collect(gc uint64) []trace.Block {
	e := &trace.Epoch{}
	m.census = map[[2]uint64]*trace.CensusRow{}
	stay, at := m.move(e)
	births, eden := trace.NewListEncoder(m.types), trace.NewWalkEncoder(m.types)
	eden.Begin(0, largeYoung)
	var samples []trace.Sample
	for len(stay) < m.survivors {
		for n := youngDead; n > 0 && m.full && eden.At() < largeYoung/2; n-- { // the first survivors need the rest
			o := m.draw()
			eden.Dead(o.typ, o.length)
		}
		o := m.draw()
		o.addr, o.age = at, 1
		at += o.words
		m.count(o, trace.Bucket1, trace.CensusBornYoung)
		if m.full {
			eden.Move(o.typ, o.length, o.addr)
		} else {
			births.Object(o.addr, o.typ, o.length)
		}
		if m.rng.IntN(200) == 0 {
			x := m.sample(o, o.addr, gc)
			o.sample = x.ID
			samples = append(samples, trace.Sample{ID: x.ID, Time: gc*1e8 - 1e6, Thread: mainThread,
				Type: uint64(o.typ), Size: x.Size, Interval: largeInterval, Frame: x.Frame})
			e.Resolved = append(e.Resolved, trace.SampleAddr{ID: x.ID, Addr: o.addr})
		}
		stay = append(stay, o)
	}
	eden.End()
	if m.full {
		e.Allocs = [][]byte{eden.Bytes()}
	} else {
		e.Births = [][]byte{births.Bytes()}
	}
	if err := cmp.Or(births.Err(), eden.Err()); err != nil {
		m.t.Fatal(err)
	}
	for _, row := range m.census {
		e.Census = append(e.Census, *row)
	}
	slices.SortFunc(e.Census, func(a, b trace.CensusRow) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Bucket, b.Bucket))
	})
	m.young = stay
	blocks := []trace.Block{trace.EncodeSamples(samples), m.epoch(gc, e, (at-m.to)*8)}
	m.from, m.to = m.to, m.from
	return blocks
}

// move makes survivors die, move or be promoted. It returns those that stay young, and the end of their space.
func (m *largeMaker) move(e *trace.Epoch) (stay []largeObject, at uint64) {
	at = m.to
	if len(m.young) == 0 {
		return nil, at
	}
	moves := trace.NewWalkEncoder(m.types)
	moves.Begin(m.from, largeHalf)
	for _, o := range m.young {
		x := m.live[o.sample]
		switch n := m.rng.IntN(100); {
		case n < 10:
			m.count(o, trace.Bucket(o.age), trace.CensusDiedYoung)
			if o.sample != 0 {
				e.SampleDead = append(e.SampleDead, o.sample)
				delete(m.live, o.sample)
			}
			continue
		case n == 10:
			m.count(o, trace.Bucket1, trace.CensusPromoted)
			moves.SkipTo(o.addr)
			dest := m.promote(o)
			moves.Move(o.typ, o.length, dest)
			x.Addr = dest
		default:
			moves.SkipTo(o.addr)
			moves.Move(o.typ, o.length, at)
			o.addr, x.Addr = at, at
			o.age++
			at += o.words
			stay = append(stay, o)
		}
		if o.sample != 0 {
			m.live[o.sample] = x
		}
	}
	moves.End()
	e.Moves = [][]byte{moves.Bytes()}
	if moves.Err() != nil {
		m.t.Fatal(moves.Err())
	}
	return stay, at
}
