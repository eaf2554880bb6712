package trace

// Versions.
const (
	FormatVersion      = 12 // of blocks: the newest that this program reads
	ProbeFormatVersion = 1  // of a probe's blocks, but for the next three
	RefsFormatVersion  = 4  // of REFS
	SliceFormatVersion = 3  // of SLICE, and of EPOCH with events of version 3
	ResourceVersion    = 5  // of META with `resource` or `process`
	CandidatesVersion  = 6  // of DEFS with `candidate` or `scanned`
	RefColumnsVersion  = 7  // of REFS with `refcolumns`
	SitedVersion       = 8  // of EPOCH with `sited`
	UsesVersion        = 9  // of EPOCH with `uses`
	KilledVersion      = 10 // of META with `killed`
	RefSamplesVersion  = 11 // of REFS with `refsamples`
	ListedSitesVersion = 12 // of SYNC and SLICE with `sited`
	// ConcurrentVersion is that of a probe's blocks, and of META, where objects have no addresses (Concurrent).
	ConcurrentVersion = 3
	ABIVersion        = 2 // of the shared ring's header
)

// Values of fields; part of the format. They are untyped so that they compare with the uint64 fields of types.go.
const (
	CollectorSerial   = 1
	CollectorParallel = 2
	CollectorG1       = 3

	CollectorZGC        = 4
	CollectorShenandoah = 5
	CollectorEpsilon    = 6
)

// Concurrent says whether a collector moves objects while the application runs, or never: then samples alone are
// recorded, no object has an address, and an epoch is a cycle.
func Concurrent(collector uint64) bool { return collector >= CollectorZGC }

// Bits of JVM.Flags.
const (
	JVMCompressedOops  = 1
	JVMCompressedClass = 2
	JVMCompactHeaders  = 4
	JVMAtStart         = 8  // loaded at start: the recording begins with the JVM
	JVMNoSampling      = 16 // sampling unavailable
)

// Depths of recording.
const (
	DepthSamples   = 1
	DepthSurvivors = 2
	DepthFull      = 3
)

// Bits of Type.Flags.
const (
	TypeArray    = 1
	TypeVariable = 2 // variable size: java.lang.Class
	TypeFiller   = 4
	TypeHidden   = 8
	TypeObjArray = 16
)

// Bits of Method.Flags and Thread.Flags, and the byte code index of a native frame.
const (
	MethodNative  = 1
	MethodHidden  = 2
	ThreadVirtual = 1
	BCINative     = -1
)

// Bits of Candidate.Flags: of the class.
const (
	MadeCloneable = 1
	MadeThrowable = 2
)

// Kinds of pauses.
const (
	PauseYoung   = 1
	PauseMixed   = 2
	PauseFull    = 3
	PauseRemark  = 4
	PauseCleanup = 5
	PauseWalk    = 6 // emergency stop without collection
	PauseUnknown = 7
	PauseMinor   = 8  // a concurrent cycle over the young generation
	PauseMajor   = 9  // a concurrent cycle over the whole heap
	PauseReading = 10 // no cycle: counters and watched samples were read
)

// Bits of Pause.Flags.
const (
	PauseExact       = 1 // the moves and deaths in this block are complete
	PauseSyncFollows = 2
	PauseEvacFailed  = 4
	PauseMissed      = 8  // a collection without events came before
	PauseFault       = 16 // a check or the guard fired: the moves and deaths of this epoch were dropped
	PauseEdenKept    = 32 // eden was not collected in this pause
	PauseLeftOut     = 64 // a storm: a listing was due, and no object is recorded until there is one

	PauseMissedShift = 16 // from this bit on: how many collections without events came before (Pause.Missed)
)

// CycleOpen is the bit of Cycle.Flags that says that the end of the cycle was not seen.
const CycleOpen = 1

// Kinds of spaces and regions.
const (
	SpaceFree          = 0
	SpaceEden          = 1
	SpaceSurvivor      = 2
	SpaceOld           = 3
	SpaceHumongous     = 4 // start
	SpaceHumongousCont = 5 // continued
	SpaceArchive       = 6
	SpaceHeap          = 7 // all of a heap whose parts are not known
)

// Reasons and flags of sync points.
const (
	SyncFirst      = 1
	SyncRotation   = 2
	SyncFull       = 3
	SyncEvacFailed = 4
	SyncMissed     = 5
	SyncFault      = 6
	SyncLost       = 7
	SyncReconnect  = 8
	SyncWalk       = 9
	SyncGC         = 10
	SyncDepth      = 11

	SyncEdenListed     = 1 // bit of Sync.Flags
	SyncFirstOfSession = 2 // bit of Sync.Flags
	SyncUncompacted    = 4 // bit of Sync.Flags: dead objects of regions that G1 did not compact may be listed
)

// Bits of Slice.Flags.
const (
	SliceFirst       = 1
	SliceLast        = 2
	SliceUncompacted = 4 // as SyncUncompacted
)

// Buckets of age of census rows: collections survived, as the object's header says.
const (
	Bucket0    = 0
	Bucket1    = 1
	Bucket2to3 = 2
	Bucket4to7 = 3
	Bucket8up  = 4
	BucketOld  = 5 // no age
)

// Bits of RefPart.Flags and of RefField.Flags.
const (
	RefFirst  = 1
	RefLast   = 2
	RefStatic = 1
)

// Kinds of classes of a reference listing.
const (
	RefInstance  = 0
	RefObjArray  = 1
	RefArray     = 2
	RefMirror    = 3
	RefReference = 4
	RefChunk     = 6 // a virtual thread's stack
	RefFiller    = 7
)

// Strengths of references.
const (
	RefStrong  = 0
	RefSoft    = 1
	RefFinal   = 2
	RefWeak    = 3
	RefPhantom = 4
)

// Kinds of references that no slot has.
const (
	RefDefines  = 1 // from a class loader to the mirror of its class
	RefResolved = 2 // from a mirror to the array of what the class's constants have resolved to
)

// Kinds of roots.
const (
	RootOther       = 0
	RootJNIGlobal   = 1
	RootJNILocal    = 2
	RootStack       = 3
	RootSystemClass = 4
	RootMonitor     = 5
	RootThread      = 6
	RootLoader      = 7 // the mirror of a class that is never unloaded
)

// Reasons of gaps.
const (
	GapOverflow  = 1
	GapViolation = 2
	GapAway      = 3
	GapStore     = 4
	GapSamples   = 5
)

// Reasons of ends.
const (
	EndDeath    = 1
	EndDetached = 2
	EndGaveUp   = 3
)

// Scopes of kills: whose counter of kills rose.
const (
	KilledCgroup  = 1 // of the memory cgroup of the JVM's process
	KilledAbove   = 2 // of one above it, as it is gone
	KilledMachine = 3 // of the machine, as no cgroup of it is left or known
)

// What a probe that is loaded into a running JVM answers; 0: it records.
const (
	LoadTwice   = 1 // this copy of the library records the JVM already
	LoadOptions = 2 // its options are wrong
	LoadJVMTI   = 3 // the JVM does not give what it needs
	LoadRefused = 4 // it refused the JVM
	LoadEnded   = 5 // this copy has recorded the JVM and cannot again; another copy of the file can
)

// Bucket gives the census bucket of an age in collections survived.
func Bucket(age uint64) uint64 {
	switch {
	case age < 2:
		return age
	case age < 4:
		return Bucket2to3
	case age < 8:
		return Bucket4to7
	}
	return Bucket8up
}
