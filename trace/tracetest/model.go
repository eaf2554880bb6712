// Package tracetest is a reference JVM for tests: a small model of a heap and its collectors that makes random, legal
// streams and knows the truth about them. It is the oracle for heap, ringstore, coverage and the codec itself.
//
// Terms. The *truth* is one struct an object, held in maps and slices; the *state* is what a reader of the stream must
// know after an epoch (docs/format/stream.md, "How a reader applies an EPOCH"): what entered survivor, old or humongous
// space, or was listed in eden, and is not known dead.
//
// Invariants: what State says follows from Blocks alone, by the rules of the format page, whenever Known is set; the
// same Config gives the same stream, byte for byte; a Model never panics for lack of room (it collects, or lets objects
// die).
//
// What it does not do: it is not fast, knows nothing of depth `samples`, and does not imitate any real program's
// demography.
package tracetest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/ramp"
)

// Config says what to model. The zero value is Serial at depth survivors with rare events switched off.
type Config struct {
	Seed      uint64
	Collector uint64 // trace.CollectorSerial (default), CollectorParallel, CollectorG1
	Depth     uint64 // trace.DepthSurvivors (default), DepthFull
	Align     uint64 // bytes, default 8
	// Eden is the size of eden in words (default 8192), and Old, unless G1, that of old space (default three edens).
	// The other spaces follow from eden.
	Eden, Old uint64
	// Fill has the program allocate until eden is full, and nothing that eden cannot hold.
	Fill bool
	// Longest is about the length of the longest pause, ns (default 1 ms).
	Longest uint64
	// SampleEvery samples one allocation in so many (default 16).
	SampleEvery int
	// The rest are probabilities of an epoch being such; 0 is never. Full collections also come when old space is full.
	Full, Remark, EvacFail, Fault, Drop float64
	// Scrub has G1 put fillers over dead objects of old regions between a Remark and the next Cleanup, as that of JDK
	// 20 and later does. Nothing reports them: Epoch.State, which has them, is what a reader knows at sync points only.
	Scrub bool
	// Quiet is the probability of an epoch that was written while somebody else wrote the ring: what became of samples
	// is in the next epoch that is not. Forget is that of a fault after which nothing reports it, and Untyped that
	// of a sample whose class the probe did not know yet.
	Quiet, Forget, Untyped float64
	// Slice is how many words a pause lists: listings are spread over pauses then. 0: each is in one piece.
	Slice uint64
	// Naive breaks a rule of such listings.
	Naive Naive
}

// All gives a configuration in which every rare event happens.
func All(seed, collector, depth uint64) Config {
	return Config{Seed: seed, Collector: collector, Depth: depth, Full: 0.05, Remark: 0.1, EvacFail: 0.04,
		Fault: 0.04, Drop: 0.03}
}

// Object is the truth about an object of the state.
type Object struct {
	ID      uint64 // identity: the same object keeps it wherever it moves
	Type    uint32
	Length  uint64 // elements, or words for java.lang.Class
	Words   uint64
	Born    uint64 // epoch (gc) in whose phase it was allocated
	Entered uint64 // epoch (gc) at whose finish it entered the state
	Age     uint64 // collections survived
	Sample  uint64 // id of its sample, 0 if none
	Space   uint64 // kind of the space it is in
}

// Epoch is what one step made.
type Epoch struct {
	Blocks    []trace.Block     // in the order of the stream, sealed with seq and version
	Pause     trace.Pause       // zero if the epoch was dropped
	Known     bool              // a reader who has followed from a sync point on knows the state now
	Synced    bool              // Blocks ends with a SYNC
	Dropped   bool              // Blocks is one GAP
	State     map[uint64]Object // by address in words; the truth even when not Known
	First     bool              // Blocks ends with the first slice of a ramp: a file can begin with it
	Unknown   ramp.Ranges       // to a reader who began with the newest ramp
	Uncounted ramp.Ranges       // by that ramp
	Died      []Object          // left the state dead at this finish, in no order
	// Allocated and AllocatedBytes count all allocations of the phase that ended, short-lived ones included, fillers
	// not.
	Allocated, AllocatedBytes uint64
	Samples                   []trace.Sample // of the phase
}

// obj is an object wherever it is.
type obj struct {
	Object
	addr uint64
	dead bool // unreachable, perhaps not collected yet
	in   bool // in the state
}

// Model is a JVM with a probe.
type Model struct {
	cfg   Config
	r     *rand.Rand
	types *trace.TypeTable
	jvm   trace.JVM
	defs  trace.Defs // all given so far
	fresh trace.Defs // not given yet
	have  map[string]bool

	mem    memory
	eden   []*obj // in address order
	known  map[uint64]*obj
	direct []*obj // allocated directly in old or humongous space in this phase

	gc, jvmGC, seq   uint64
	now, lastFinish  uint64
	nextID, nextSamp uint64
	lost             bool   // the reader does not know the state
	owe              uint64 // reason of a sync point that is due, 0 none
	samples          []trace.Sample
	unresolved       map[uint64]*obj         // by sample id: allocated, not in the state
	untold           map[uint64]*obj         // by sample id: in the state, which no epoch has said
	untoldDead       []uint64                // samples that have died since, which no epoch has said
	given            map[uint64]trace.Sample // all samples ever sent
	allocated, bytes uint64
	roll             rolling
}

// New makes a JVM whose heap is empty.
func New(cfg Config) *Model {
	def := func(p *uint64, v uint64) {
		if *p == 0 {
			*p = v
		}
	}
	def(&cfg.Collector, trace.CollectorSerial)
	def(&cfg.Depth, trace.DepthSurvivors)
	def(&cfg.Align, 8)
	def(&cfg.Eden, 8192)
	def(&cfg.Longest, 1e6)
	cfg.Eden = max(cfg.Eden, 512)
	if cfg.SampleEvery == 0 {
		cfg.SampleEvery = 16
	}
	m := &Model{
		cfg: cfg, r: rand.New(rand.NewPCG(cfg.Seed, cfg.Collector<<8|cfg.Depth)), types: trace.NewTypeTable(cfg.Align),
		have: map[string]bool{}, known: map[uint64]*obj{}, unresolved: map[uint64]*obj{},
		given: map[uint64]trace.Sample{}, untold: map[uint64]*obj{},
		owe: trace.SyncFirst, lost: true,
	}
	m.mem = newMemory(m)
	m.jvm = trace.JVM{
		ABI: trace.ABIVersion, Major: 25, Collector: cfg.Collector, PID: 4711, StartMS: 1_700_000_000_000,
		T0WallMS: 1_700_000_000_250,
		HeapBase: 0x7_0000_0000, Align: cfg.Align, RegionWords: m.mem.regionWords(),
		Flags: trace.JVMCompressedOops | trace.JVMAtStart,
		Depth: cfg.Depth, Interval: uint64(cfg.SampleEvery) * 40, MaxHeap: m.mem.words() * 8,
		Session: fmt.Sprintf("%032x", cfg.Seed), VM: "Reference VM", Probe: "tracetest",
	}
	return m
}

// Meta gives the META block, seq 0.
func (m *Model) Meta() trace.Block { return trace.EncodeMeta(trace.Meta{JVM: m.jvm, HasJVM: true}) }

// Head gives META and DEFS with all definitions given so far, seq 0: what the agent writes at the start of a file,
// before its SYNC.
func (m *Model) Head() []trace.Block { return []trace.Block{m.Meta(), trace.EncodeDefs(m.defs)} }

// Defs gives all definitions given so far. The caller must not change it.
func (m *Model) Defs() trace.Defs { return m.defs }

// Types gives the sizes of all types; it grows with the model.
func (m *Model) Types() *trace.TypeTable { return m.types }

// JVM gives the model's `jvm` event.
func (m *Model) JVM() trace.JVM { return m.jvm }

// End gives the END block of a JVM that exits now.
func (m *Model) End() trace.Block {
	return m.seal(trace.EncodeEnd(trace.End{Time: m.now, Reason: trace.EndDeath}))
}

// Step runs the program up to its next pause and collects. With wantSync the pause is one that answers a sync request,
// and a SYNC is the last of the blocks (unless the epoch is dropped; the SYNC then comes with the next). The first step
// begins with META.
func (m *Model) Step(wantSync bool) *Epoch {
	m.mutate()
	if wantSync && m.owe == 0 {
		m.owe = trace.SyncRotation
	}
	p := m.cfg
	kind, x := uint64(trace.PauseYoung), m.r.Float64()
	switch {
	case m.mem.needsFull() || x < p.Full:
		kind = trace.PauseFull
	case p.Collector != trace.CollectorG1:
	case m.owe == 0 && x < p.Full+p.Remark/2:
		kind = trace.PauseRemark
	case m.owe == 0 && x < p.Full+p.Remark:
		kind = trace.PauseCleanup
	case m.r.IntN(3) == 0 && !m.mem.marking():
		kind = trace.PauseMixed
	}
	return m.pause(kind, false)
}

// Walk runs the program a little and stops it for an emergency sync point without a collection (pause kind walk).
func (m *Model) Walk() *Epoch {
	m.mutate()
	if m.owe == 0 {
		m.owe = trace.SyncWalk
	}
	return m.pause(trace.PauseWalk, true)
}

// Pass lets time pass, ns, in which nothing happens.
func (m *Model) Pass(ns uint64) { m.now += ns }

// FullGC runs the program a little and collects everything; a SYNC follows.
func (m *Model) FullGC() *Epoch {
	m.mutate()
	return m.pause(trace.PauseFull, true)
}

// mutate is a phase: allocations, and deaths that nobody sees yet.
func (m *Model) mutate() {
	m.mem.scrub(false)
	limit := m.cfg.Eden/4 + m.r.Uint64N(m.cfg.Eden)
	if m.cfg.Fill {
		limit = 1 << 62
	}
	for used := uint64(0); used < limit; {
		t := m.typ(m.r.IntN(len(catalogue) - 1))
		length := uint64(0)
		if m.types.HasLength(t.ID) {
			length = m.align(2 + m.r.Uint64N(14))
			if t.Flags&trace.TypeArray != 0 {
				length = m.r.Uint64N(20)
				if m.r.IntN(60) == 0 {
					length = m.r.Uint64N(300)
				}
			}
		}
		big := m.r.IntN(400) == 0 && !m.cfg.Fill
		if big {
			t = m.typ(longArray)
			length = m.mem.bigWords() + m.r.Uint64N(m.cfg.Eden/8)
		}
		words, _ := m.types.Words(t.ID, length)
		big = big || words >= m.mem.bigWords()
		m.nextID++
		o := &obj{Object: Object{ID: m.nextID, Type: uint32(t.ID), Length: length, Words: words, Born: m.gc + 1}}
		if big {
			if !m.mem.allocBig(o) {
				break
			}
			m.direct = append(m.direct, o)
		} else {
			if m.r.IntN(50) == 0 { // the rest of a TLAB that was given back
				m.mem.skipEden(m.align(1 + m.r.Uint64N(20)))
			}
			if !m.mem.allocEden(o) {
				break
			}
			m.eden = append(m.eden, o)
		}
		used += words
		m.allocated++
		m.bytes += words * 8
		m.now += 20 + m.r.Uint64N(2000)
		if m.r.IntN(m.cfg.SampleEvery) == 0 {
			m.sample(o)
		}
	}
	// Deaths. What the program holds on to longest dies least.
	for _, o := range m.eden {
		if !o.dead && m.r.IntN(100) < 75 {
			o.dead = true
		}
	}
	for _, o := range m.sorted() {
		rate := 12
		if o.Space == trace.SpaceSurvivor {
			rate = 30
		}
		if m.r.IntN(100) < rate {
			o.dead = true
		}
	}
	m.mem.relieve()
}

func (m *Model) sample(o *obj) {
	m.nextSamp++
	o.Sample = m.nextSamp
	m.unresolved[o.Sample] = o
	m.samples = append(m.samples, trace.Sample{
		ID: o.Sample, Time: m.now, Thread: m.thread(), Type: uint64(o.Type), Size: o.Words * 8,
		Interval: m.jvm.Interval,
		Frame:    m.stack(),
	})
	if m.cfg.Untyped > 0 && m.r.Float64() < m.cfg.Untyped {
		m.samples[len(m.samples)-1].Type = 0
	}
}

// align rounds words up to the alignment of objects.
func (m *Model) align(words uint64) uint64 {
	a := m.cfg.Align / 8
	return (words + a - 1) / a * a
}

// sorted gives the objects of the state by address: maps would make runs differ.
func (m *Model) sorted() []*obj {
	out := make([]*obj, 0, len(m.known))
	for _, o := range m.known {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *obj) int { return cmp(a.addr, b.addr) })
	return out
}

func cmp(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (m *Model) seal(b trace.Block) trace.Block {
	m.seq++
	b.Seq, b.Version = m.seq, trace.ProbeFormatVersion
	return b
}
