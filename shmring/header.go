package shmring

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// Parts of the format (docs/format/shared-ring.md). ringtest writes by the same table.
const (
	Magic       = "HEAPCAMR"
	ABI         = 2
	HeaderSize  = 65536 // a multiple of every page size in use
	HeaderUsed  = 4096  // of it; what lies behind may be a hole
	HeaderSize1 = 4096  // of ABI 1
	MinCapacity = 1 << 20
	MaxCapacity = 1 << 30

	// StaleAfterNS is the age, in ns, at which a heartbeat counts as silence.
	StaleAfterNS = 5_000_000_000
)

// Offsets of the header's words; part of the format.
const (
	OffMagic           = 0
	OffABI             = 8
	OffHeaderSize      = 12
	OffCapacity        = 16
	OffPID             = 24
	OffFlags           = 28
	OffStartTicks      = 32
	OffPIDNS           = 40
	OffSession         = 48
	OffProbeVersion    = 80
	OffHead            = 128
	OffState           = 136
	OffDepthNow        = 140
	OffHeartbeat       = 144
	OffEpochs          = 152
	OffEpochsDropped   = 160
	OffEpochsFailed    = 168
	OffSamples         = 176
	OffSamplesDropped  = 184
	OffSyncDone        = 192
	OffEmergencyDone   = 200
	OffRedefineDone    = 208
	OffProbeNS         = 216
	OffPauseNS         = 224
	OffLastSyncBytes   = 232
	OffLiveBytes       = 240
	OffSampleNS        = 248
	OffTail            = 256
	OffAgentHeartbeat  = 264
	OffAgentGeneration = 272
	OffSlices          = 280
	OffReferences      = 288
	OffSyncWanted      = 320
	OffEmergency       = 328
	OffEmergencyMethod = 336
	OffDepthWanted     = 340
	OffIntervalWanted  = 344
	OffPause           = 352
	OffDetach          = 356
	OffRedefine        = 360
	OffEpochMax        = 368
	OffCostMax         = 376
	OffExhausted       = 384
	OffSitesCut        = 392
	OffSitesFolded     = 400
	OffReferencesDone  = 408
	OffReferencesState = 416
	OffReferencesTorn  = 424
	OffClassesLeft     = 432
	OffHelpersNS       = 440
	OffReason          = 512
	OffSyncPredicted   = 448
	OffSyncTooLong     = 456
	OffEpochsCut       = 464
	OffBase            = 472
	OffStorm           = 480
	OffWalkSurvivors   = 488
	OffWalkFull        = 496
	OffJVM             = 1024
	OffName            = 1536

	LenSession      = 32
	LenProbeVersion = 48
	LenReason       = 512
	LenJVM          = 512
	LenName         = 128

	headerUsed = OffName + LenName // what one pread of the header takes

	// The agent's control words, which it carries over to a ring that takes over.
	controlFrom, controlTo = OffReferences, OffExhausted
)

// Bits of Status.Flags; part of the format.
const (
	FlagDisk  = 1 // disk-backed: writeback can fault inside a pause
	FlagMemfd = 2 // lost when both processes die, unless another keeps a descriptor
)

// State is the probe's state word.
type State uint32

// States; part of the format.
const (
	StateStarting State = iota
	StateRecording
	StatePaused
	StateRefused
	StateDetached
	StateGoodbye
	StateGaveUp
	StateMoved // a larger ring continues where this one ends
)

var stateNames = [...]string{"starting", "recording", "paused", "refused", "detached", "goodbye", "gave up", "moved"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// Ended says whether the probe will commit nothing more.
func (s State) Ended() bool { return s >= StateRefused && s <= StateGaveUp }

// Method is the way of an emergency sync point; part of the format.
type Method uint32

// Emergency methods.
const (
	MethodWalk   Method = 1 // a stop without collection
	MethodGC     Method = 2 // a full collection
	MethodOracle Method = 3 // test mode only
)

// ReferencesState says what the probe does about reference listings; part of the format.
type ReferencesState uint32

// States of it.
const (
	ReferencesIdle    ReferencesState = 1
	ReferencesTaking  ReferencesState = 2
	ReferencesSending ReferencesState = 3
)

// Status is the header, all of it, as one pread saw it. The words are not taken at one instant with respect to the
// probe. Times are ns of CLOCK_MONOTONIC, sizes bytes. Texts have invalid UTF-8 and control characters replaced, so
// that they may be shown.
type Status struct {
	Capacity   uint64
	PID        uint32 // in the JVM's own pid namespace
	Flags      uint32
	StartTicks uint64 // field 22 of /proc/PID/stat
	PIDNS      uint64 // inode of the JVM's pid namespace
	Session    string // 32 hex digits
	Probe      string // version of the probe
	JVM        string // VM name and version
	Reason     string // why refused, detached or stopped
	Name       string // PROGRAM@HOST, of rings in a spool folder

	// Written by the probe.
	Head           uint64
	State          State
	Depth          uint32 // in force
	Heartbeat      uint64
	Epochs         uint64 // pauses seen
	EpochsDropped  uint64 // whole epochs lost to overflow
	EpochsFailed   uint64 // epochs whose moves and deaths a check or the guard dropped
	Samples        uint64
	SamplesDropped uint64
	SyncDone       uint64 // newest ticket answered; likewise the next two
	EmergencyDone  uint64
	RedefineDone   uint64
	ProbeNS        uint64 // own time inside pauses
	PauseNS        uint64 // all pauses
	SampleNS       uint64 // own time in sampling callbacks, over threads
	LastSyncBytes  uint64
	LiveBytes      uint64 // heap used after the last collection
	Exhausted      uint64 // allocations that failed for want of heap
	SitesCut       uint64 // samples whose stack was cut: the table of frames was full
	SitesFolded    uint64 // least used frames that left the full table
	SyncPredicted  uint64 // ns that listing the heap would take, as far as known
	SyncTooLong    bool   // that is more than it may: depth samples until it is not
	EpochsCut      uint64 // epochs recorded at a lower depth than wanted, to stay below EpochMax
	Base           uint64 // position of the first byte: where the ring before this one ended
	Storm          uint64 // CLOCK_MONOTONIC, ns: until then full collections follow each other; 0: they never did
	WalkSurvivors  uint64 // what the walks of all pauses were expected to take at depth survivors, ns
	WalkFull       uint64 // the same at depth full; 0: the probe is older

	ReferencesDone uint32          // newest ticket answered
	References     ReferencesState // 0: the probe is older than reference listings
	ReferencesTorn uint64          // reference listings of which some parts were not sent
	HelpersNS      uint64          // CPU time of threads of the probe that help in pauses
	ClassesLeft    uint64          // that the JVM still has to load anew, for exact sites

	// Written by the agent.
	Tail            uint64
	AgentHeartbeat  uint64
	AgentGeneration uint64
	Slices          uint64 // generation of an agent that stores SLICE blocks
	ReferencesAsked uint32 // newest ticket given
	SyncWanted      uint64
	Emergency       uint64
	EmergencyMethod Method
	DepthWanted     uint32
	IntervalWanted  uint64 // bytes + 1; 0: leave it
	PauseWhy        uint32 // 0: none (PauseAsked, PauseSwitch)
	Detach          bool
	Redefine        uint64
	EpochMax        uint64 // ns that an ordinary epoch may be expected to take; 0: any
	CostMax         uint64 // what ProbeNS and SampleNS together may come to with it; 0: not reported
}

// Backlog gives the bytes committed and not yet consumed.
func (s Status) Backlog() uint64 { return s.Head - s.Tail }

func parseHeader(h []byte) Status {
	s := parseCounters(h)
	s.texts(h)
	return s
}

func (s *Status) texts(h []byte) {
	s.Session = text(h[OffSession : OffSession+LenSession])
	s.Probe = text(h[OffProbeVersion : OffProbeVersion+LenProbeVersion])
	s.JVM = text(h[OffJVM : OffJVM+LenJVM])
	s.Reason = text(h[OffReason : OffReason+LenReason])
	s.Name = text(h[OffName : OffName+LenName])
}

func parseCounters(h []byte) Status {
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(h[off:]) }
	u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(h[off:]) }
	return Status{
		Capacity:   u64(OffCapacity),
		PID:        u32(OffPID),
		Flags:      u32(OffFlags),
		StartTicks: u64(OffStartTicks),
		PIDNS:      u64(OffPIDNS),

		Head:           u64(OffHead),
		State:          State(u32(OffState)),
		Depth:          u32(OffDepthNow),
		Heartbeat:      u64(OffHeartbeat),
		Epochs:         u64(OffEpochs),
		EpochsDropped:  u64(OffEpochsDropped),
		EpochsFailed:   u64(OffEpochsFailed),
		Samples:        u64(OffSamples),
		SamplesDropped: u64(OffSamplesDropped),
		SyncDone:       u64(OffSyncDone),
		EmergencyDone:  u64(OffEmergencyDone),
		RedefineDone:   u64(OffRedefineDone),
		ProbeNS:        u64(OffProbeNS),
		PauseNS:        u64(OffPauseNS),
		SampleNS:       u64(OffSampleNS),
		LastSyncBytes:  u64(OffLastSyncBytes),
		SyncPredicted:  u64(OffSyncPredicted),
		SyncTooLong:    u32(OffSyncTooLong) != 0,
		EpochsCut:      u64(OffEpochsCut),
		Base:           u64(OffBase),
		Storm:          u64(OffStorm),
		WalkSurvivors:  u64(OffWalkSurvivors),
		WalkFull:       u64(OffWalkFull),
		ReferencesDone: u32(OffReferencesDone),
		References:     ReferencesState(u32(OffReferencesState)),
		ReferencesTorn: u64(OffReferencesTorn),
		ClassesLeft:    u64(OffClassesLeft),
		HelpersNS:      u64(OffHelpersNS),
		LiveBytes:      u64(OffLiveBytes),
		Exhausted:      u64(OffExhausted),
		SitesCut:       u64(OffSitesCut),
		SitesFolded:    u64(OffSitesFolded),

		Tail:            u64(OffTail),
		AgentHeartbeat:  u64(OffAgentHeartbeat),
		AgentGeneration: u64(OffAgentGeneration),
		Slices:          u64(OffSlices),
		ReferencesAsked: u32(OffReferences),
		SyncWanted:      u64(OffSyncWanted),
		Emergency:       u64(OffEmergency),
		EmergencyMethod: Method(u32(OffEmergencyMethod)),
		DepthWanted:     u32(OffDepthWanted),
		IntervalWanted:  u64(OffIntervalWanted),
		PauseWhy:        u32(OffPause),
		Detach:          u32(OffDetach) != 0,
		Redefine:        u64(OffRedefine),
		EpochMax:        u64(OffEpochMax),
		CostMax:         u64(OffCostMax),
	}
}

// text gives a NUL-terminated field as something that may go to a terminal.
func text(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(string(b), string(utf8.RuneError)))
}
