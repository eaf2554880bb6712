// Package shmring is the agent's side of the shared ring through which a probe speaks (docs/format/shared-ring.md).
//
//	starting -> recording <-> paused -> goodbye | detached | gave up        refused: nothing was understood
//
// Invariants: (1) the file is read with pread and never mapped, so a JVM that truncates it causes an error and not a signal;
// (2) only copies are parsed, and each is checked before it is handed out; (3) tail moves only by Commit, which the caller calls after it
// has persisted what it read: what was committed by the probe is lost neither by a kill of the JVM nor of the agent.
// It does not interpret blocks beyond their framing.
package shmring

import (
	"errors"
	"fmt"
)

// Offsets of the header; part of the ABI, compared with probe/heapcam_abi.h by a test.
const (
	magic       = "HEAPCAMR"
	abiVersion  = 1
	headerSize  = 4096
	minCapacity = 1 << 20
	maxCapacity = 1 << 30

	offABI             = 8
	offHeaderSize      = 12
	offCapacity        = 16
	offPID             = 24
	offFlags           = 28
	offStartTicks      = 32
	offPIDNS           = 40
	offSession         = 48
	offProbeVersion    = 80
	offHead            = 128
	offState           = 136
	offDepthNow        = 140
	offHeartbeat       = 144
	offEpochs          = 152
	offEpochsDropped   = 160
	offEpochsFailed    = 168
	offSamples         = 176
	offSamplesDropped  = 184
	offSyncDone        = 192
	offEmergencyDone   = 200
	offRedefineDone    = 208
	offProbeNS         = 216
	offPauseNS         = 224
	offLastSyncBytes   = 232
	offLiveBytes       = 240
	offSampleNS        = 248
	offTail            = 256
	offAgentHeartbeat  = 264
	offGeneration      = 272
	offSyncWanted      = 320
	offEmergency       = 328
	offEmergencyMethod = 336
	offDepthWanted     = 340
	offIntervalWanted  = 344
	offPause           = 352
	offDetach          = 356
	offRedefine        = 360
	offReason          = 512
	offJVM             = 1024
)

// State is the probe's state.
type State uint32

// States of a probe; part of the ABI.
const (
	Starting State = iota
	Recording
	Paused
	Refused
	Detached
	Goodbye
	GaveUp
)

var stateNames = [...]string{"starting", "recording", "paused", "refused", "detached", "goodbye", "gave up"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}

// Ended says that the probe will write no more.
func (s State) Ended() bool { return s == Refused || s == Detached || s == Goodbye || s == GaveUp }

// Status is a copy of the header: what the probe says of itself. Times are CLOCK_MONOTONIC ns, sizes bytes.
type Status struct {
	Capacity                                                                               uint64
	PID, Flags, Depth                                                                      uint32
	StartTicks, PIDNS                                                                      uint64
	Session, Probe, Reason, JVM                                                            string
	State                                                                                  State
	Head, Tail, Heartbeat, AgentHeartbeat, Epochs, EpochsDropped, EpochsFailed, Samples    uint64
	SamplesDropped, SyncDone, EmergencyDone, RedefineDone, ProbeNS, PauseNS, LastSyncBytes uint64
	LiveBytes, SampleNS, Generation, SyncWanted, Emergency, Redefine                       uint64
}

// ErrNotReady says that the producer has not finished creating the ring.
var ErrNotReady = errors.New("not ready yet")

// QuarantineError says that the producer broke the protocol; the ring is not read any further.
type QuarantineError struct {
	Path, Why string
	Err       error
}

func (e *QuarantineError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("shared ring %s is unusable: %s: %v", e.Path, e.Why, e.Err)
	}
	return fmt.Sprintf("shared ring %s is unusable: %s", e.Path, e.Why)
}

func (e *QuarantineError) Unwrap() error { return e.Err }

// TooNewError says that the probe speaks a newer ABI than this agent.
type TooNewError struct {
	Path string
	ABI  uint32
}

func (e *TooNewError) Error() string {
	return fmt.Sprintf("shared ring %s has ABI %d; this heapcam speaks %d: use a newer heapcam", e.Path, e.ABI, abiVersion)
}
