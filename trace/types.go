package trace

// Kind is the kind of a block (docs/format/stream.md).
type Kind uint8

// Block kinds; part of the format.
const (
	KindMeta Kind = iota + 1
	KindDefs
	KindSamples
	KindEpoch
	KindSync
	KindGap
	KindEnd
	KindSummary
	KindLayout // reserved
	KindRefs
	KindSlice
)

// Block is one block of the stream. Payload does not include the 16-byte header or the padding.
type Block struct {
	Kind    Kind
	Version uint8
	Flags   uint16
	Seq     uint64
	Payload []byte
}

// JVM is the `jvm` event: what a recording is a recording of.
type JVM struct {
	ABI, Major, Collector, PID                                     uint64
	StartMS, T0WallMS                                              uint64 // Unix milliseconds
	HeapBase                                                       uint64 // byte address of word 0
	HeapWords, Align, RegionWords, Flags, Depth, Interval, MaxHeap uint64
	Session, VM, Probe                                             string
}

// Note is a text for people who read a recording. No program reads it.
type Note struct {
	Time uint64
	Text string
}

// Type describes a class as the heap sees it.
type Type struct {
	ID, Flags, Size, Log2, Loader, Word uint64
	Name                                string // VM-internal: java/lang/String, [I
}

// Loader names a class loader.
type Loader struct {
	ID   uint64
	Name string
}

// LineEntry is one row of a method's line table.
type LineEntry struct{ BCI, Line int }

// Method is a Java method that is in some stack.
type Method struct {
	ID                     uint64
	Class, Name, Sig, File string // Class is a signature: Ljava/lang/String;
	Flags                  uint64
	Lines                  []LineEntry
}

// Frame is a node of the trie of stacks: its stack is the node itself (innermost) and its parents.
type Frame struct {
	ID, Parent, Method uint64
	BCI                int64
}

// Thread is a thread that allocated.
type Thread struct {
	ID, Flags uint64
	Name      string
}

// Candidate is a bytecode `new` that may have made objects of a type. Without a method: there are more of them than are
// written.
type Candidate struct{ Type, Method, BCI, Flags uint64 }

// Scanned says that all methods were read which had run by collection GC: what made objects that are older than it is
// among the candidates before. Blind: objects of up to this collection may have been made by a class that was unloaded
// before it was read; 0: there is none.
type Scanned struct{ GC, Blind uint64 }

// Sample is one sampled allocation. Size and Interval are bytes, Time is ns since the probe's start.
type Sample struct {
	ID, Time, Thread, Type, Size, Interval, Frame uint64
	// Chances is set of a sample that the probe watches: the inverse of the probability with which it was chosen.
	Chances uint64
}

// Space is a space's extent (words from heap base) and use (bytes) in one pause.
type Space struct {
	Kind, Bottom, Top, End, UsedBefore, UsedAfter uint64
}

// InUse sums spaces by the columns of a CollectionRow, bytes: all of them before the collection, and after it eden,
// survivors, humongous objects and the rest.
func InUse(spaces []Space) (before, eden, survivor, humongous, old uint64) {
	for _, s := range spaces {
		before += s.UsedBefore
		switch s.Kind {
		case SpaceEden:
			eden += s.UsedAfter
		case SpaceSurvivor:
			survivor += s.UsedAfter
		case SpaceHumongous, SpaceHumongousCont:
			humongous += s.UsedAfter
		default:
			old += s.UsedAfter
		}
	}
	return
}

// Pause is the pause that ends an epoch. Times are ns since the probe's start.
type Pause struct {
	GC, Kind, Flags, Depth, Start, Dur, Probe, JVMGC, PhaseStart uint64
	Cause                                                        string
	Interval                                                     uint64
}

// Missed gives how many collections without events came before. Of a recording that does not say how many it gives 1.
func (p *Pause) Missed() uint64 {
	if p.Flags&PauseMissed == 0 {
		return 0
	}
	return max(p.Flags>>PauseMissedShift, 1)
}

// Range is a range of words from the heap base: [Start, Start+Words).
type Range struct{ Start, Words uint64 }

// SampleAddr says where the object of a sample is.
type SampleAddr struct{ ID, Addr uint64 }

// CensusCell counts objects and bytes.
type CensusCell struct{ Objects, Bytes uint64 }

// CensusRow is one row of a census delta; Cells is indexed by the mask bit (CensusBornYoung …).
type CensusRow struct {
	Type, Bucket uint64
	Cells        [5]CensusCell
}

// Indexes of CensusRow.Cells.
const (
	CensusBornYoung = iota
	CensusBornOld
	CensusPromoted
	CensusDiedYoung
	CensusDiedOld
)

// Epoch is a decoded EPOCH block. Allocs, Moves, Births are token blobs, read with WalkTokens and ListTokens; they
// alias the block.
type Epoch struct {
	Pause      Pause
	Spaces     []Space
	Regions    []RegionRun
	Allocs     [][]byte
	Moves      [][]byte
	Births     [][]byte
	Freed      []Range
	Resolved   []SampleAddr
	Sited      []SitedAddr
	SampleDead []uint64
	Uses       []Use
	UseScope   string // the packages whose code notes uses, "" where that is not said
	Census     []CensusRow

	Lost      Lost
	Uncounted []UncountedRow

	// Of collectors whose objects have no address.
	Cycle     Cycle
	HasCycle  bool
	Stops     []Stop   // the pauses of the cycle
	Survived  []uint64 // watched samples that are proven to have outlived garbage
	Unwatched []uint64 // watched samples that were given up; the chances of all others double
}

// SitedAddr is an object that survived the eden it was allocated in, at its new address: Frame is where it was
// allocated, by the bytecode. Its callers are not known.
type SitedAddr struct{ Addr, Frame uint64 }

// Use says of a sample that lives, or has just died, when its object was used last (option `drag`). Since is when the
// probe began to follow it, in ms since the probe's start. Used is by how many ms later the last use was, + 1; 0: none
// since then.
type Use struct{ ID, Since, Used, Flags uint64 }

// UseBlind is a bit of Use.Flags: uses before this pause may have been missed.
const UseBlind = 1

// Cycle is a concurrent cycle. Times are ns since the probe's start, End at most 50 ms late.
type Cycle struct{ Begin, End, Flags, Pauses, Longest uint64 }

// Stop is a pause of a cycle, ns.
type Stop struct{ Start, Dur uint64 }

// Over gives the end of what an epoch records, ns since the probe's start: of the pause, or of the cycle.
func (e *Epoch) Over() uint64 {
	if e.HasCycle {
		return max(e.Cycle.End, e.Cycle.Begin)
	}
	return e.Pause.Start + e.Pause.Dur
}

// Lost says what a reader has to forget because epochs before this one were lost: those after the collection Since (0:
// none). What it knows in Cleared has gone. In Unknown there are objects that it has not heard of.
type Lost struct {
	Since            uint64
	Cleared, Unknown []Range
}

// UncountedRow counts, of a type and age, what died and what survived of what a ramp had not listed yet.
type UncountedRow struct {
	Type, Bucket uint64
	Died, Gained CensusCell
}

// Slice is a decoded SLICE block: a part of a listing that is spread over several pauses, behind epoch GC. Lists and
// Again are list-token blobs that alias the block; what Again lists was counted before.
type Slice struct {
	GC, Ramp, N, Reason, Flags uint64
	Left, Uncounted            uint64 // words that are unknown, and not counted, after it
	Time, Probe                uint64
	Pending                    []Range // of the first one: all that is unknown before it
	Listed                     []Range
	Spaces                     []Space
	Regions                    []RegionRun
	Lists, Again               [][]byte
	Samples                    []LiveSample // of the last one
	SampleTypes                []uint64     // of the objects of Samples, in their order
	Objects, Bytes             uint64       // in Lists and Again
	Sited                      []SitedAddr  // of the last one: sites of what is outside of eden, by the bytecode
}

// First says that reading can start at this slice.
func (s *Slice) First() bool { return s.Flags&SliceFirst != 0 }

// Last says that the state is complete with this slice.
func (s *Slice) Last() bool { return s.Flags&SliceLast != 0 }

// RegionRun is a run of G1 regions of one space kind, in the order of the region table.
type RegionRun struct{ Kind, Run uint64 }

// LiveSample is a sample whose object is alive at a sync point. Addr in words from heap base.
type LiveSample struct {
	ID, Addr, Frame, Thread, Birth, Interval, Size uint64
}

// Sync is a decoded SYNC block. Lists are list-token blobs that alias the block.
type Sync struct {
	GC, Reason, Flags, Time, Probe uint64
	Spaces                         []Space
	Regions                        []RegionRun
	Lists                          [][]byte
	Samples                        []LiveSample
	Objects, Bytes                 uint64
	Watching                       []Watching  // of Samples; objects have no address then
	Sited                          []SitedAddr // sites of what is listed outside of eden, by the bytecode
}

// Watching is a sample that the probe watches. Chances: see Sample. Survived: it is proven to have outlived garbage.
type Watching struct {
	ID, Type, Chances uint64
	Survived          bool
}

// Gap says that something was lost.
type Gap struct{ Reason, Epochs, Samples, Time uint64 }

// End is the last word of a session.
type End struct {
	Time, Reason uint64
	Text         string
}
