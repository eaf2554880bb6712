package shmring

import (
	"bytes"
	"encoding/binary"
)

// Control words. Each setter needs Acquire first and gives ErrNotAcquired, ErrSuperseded, *ViolationError or an I/O
// error.

// RequestSync asks for a sync point in the next natural collection. It is answered when Status.SyncDone ≥ ticket.
func (r *Ring) RequestSync() (ticket uint64, err error) { return r.raise(OffSyncWanted) }

// RequestEmergency asks for a sync point now (Status.EmergencyDone ≥ ticket).
func (r *Ring) RequestEmergency(m Method) (ticket uint64, err error) {
	if err := r.set32(OffEmergencyMethod, uint32(m)); err != nil { // before the counter that makes it count
		return 0, err
	}
	return r.raise(OffEmergency)
}

// RequestReferences asks for a reference listing now, for which the JVM may be stopped for so many ms; 0: the probe's
// default. It is answered by REFS blocks, the first of which has the ticket, and when Status.ReferencesDone is it.
// A probe whose Status.References is 0 does not answer.
func (r *Ring) RequestReferences(ms uint32) (ticket uint32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return 0, err
	}
	var b [4]byte
	if err := readFull(r.f, b[:], OffReferences); err != nil {
		return 0, r.quarantine(0, "control word", err)
	}
	ticket = binary.LittleEndian.Uint32(b[:]) + 1
	err = r.put64(OffReferences, uint64(ms)<<32|uint64(ticket)) // one word: both at once
	r.carry()
	return ticket, err
}

// SetDepth sets the depth of recording from the next pause on (trace.Depth…).
func (r *Ring) SetDepth(depth uint32) error { return r.set32(OffDepthWanted, depth) }

// SetEpochMax sets what an ordinary epoch may be expected to take, ns; the probe records one that would take more at
// a lower depth, at which it stays until that or less is wanted (Status.EpochsCut). 0: any.
func (r *Ring) SetEpochMax(ns uint64) error { return r.set64(OffEpochMax, ns) }

// SetCostMax is SetEpochMax by what ProbeNS and SampleNS together may come to, ns: what was spent since the caller
// looked counts. 0: not reported.
func (r *Ring) SetCostMax(ns uint64) error { return r.set64(OffCostMax, ns) }

// SetInterval sets the mean interval of sampling in bytes; 0 samples every allocation.
func (r *Ring) SetInterval(bytes uint64) error { return r.set64(OffIntervalWanted, bytes+1) }

// SetPause stops recording, or lets it continue if why is 0. The probe asks only whether there is a reason; which, the
// next agent knows by it.
func (r *Ring) SetPause(why uint32) error { return r.set32(OffPause, why) }

// Reasons of a pause, bits of Status.PauseWhy; part of the format.
const (
	PauseAsked  = 1 // for this JVM
	PauseSwitch = 2 // the host's switch
	PauseOwner  = 4 // for this JVM, by its own user
)

// Detach asks the probe to stop. It answers by an END block and StateDetached.
func (r *Ring) Detach() error { return r.set32(OffDetach, 1) }

// Beat shows the probe that somebody reads. Wait does it too; call it at least every 2 s when busy elsewhere.
func (r *Ring) Beat() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return err
	}
	err := r.beat()
	r.carry()
	return err
}

func (r *Ring) beat() error {
	now := Monotonic()
	if err := r.put64(OffAgentHeartbeat, now); err != nil {
		return err
	}
	r.beatAt = now
	return nil
}

// raise adds one to a counter. Counters are relative: whatever an agent before left there is the base.
func (r *Ring) raise(off int) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return 0, err
	}
	var b [8]byte
	if err := readFull(r.f, b[:], int64(off)); err != nil {
		return 0, r.quarantine(0, "control word", err)
	}
	v := binary.LittleEndian.Uint64(b[:]) + 1
	err := r.put64(off, v)
	r.carry()
	return v, err
}

func (r *Ring) set32(off int, v uint32) error {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	return r.set(off, b[:])
}

func (r *Ring) set64(off int, v uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return r.set(off, b[:])
}

func (r *Ring) set(off int, b []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return err
	}
	err := r.put(off, b)
	r.carry()
	return err
}

// carry writes the control words and the heartbeat into the ring that takes over, if the probe has moved there.
// The probe looks at that one alone, and the old one may take long to read where the disk is slow or hangs.
// What fails is made good when the new ring is followed to.
// As long as the probe has not moved, this is one read. r.mu is held.
func (r *Ring) carry() {
	var state [4]byte
	if readFull(r.f, state[:], OffState) != nil || State(binary.LittleEndian.Uint32(state[:])) != StateMoved {
		return
	}
	next, err := r.successor()
	if err != nil || next == nil {
		return
	}
	defer next.f.Close()
	h := make([]byte, headerUsed)
	if s, err := next.status(h); err != nil || !r.sameJVM(h) || s.Base < r.tail {
		return
	}
	if r.putWords(next) == nil {
		_ = next.put64(OffAgentHeartbeat, r.beatAt)
	}
}

// putWords copies the control words into next.
func (r *Ring) putWords(next *Ring) error {
	words := make([]byte, controlTo-controlFrom)
	if err := readFull(r.f, words, controlFrom); err != nil {
		return r.quarantine(0, "control words", err)
	}
	for i := 0; i < len(words); i += 8 {
		if err := next.put(controlFrom+i, words[i:i+8]); err != nil {
			return err
		}
	}
	return nil
}

// sameJVM says whether the header h names the process and session of this ring.
func (r *Ring) sameJVM(h []byte) bool {
	same := func(from, to int) bool { return bytes.Equal(h[from:to], r.fixed[from:to]) }
	return same(OffPID, OffFlags) && same(OffStartTicks, OffSession+LenSession)
}

func (r *Ring) put64(off int, v uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return r.put(off, b[:])
}

// put writes one word of the agent, in one pwrite of its aligned bytes. It is a release: what was read and written
// before it is older than the word. A truncated file is not made longer again by it.
func (r *Ring) put(off int, b []byte) error {
	size, err := r.f.Size()
	if err != nil {
		return err
	}
	if uint64(size) < r.header+r.capacity {
		return r.quarantine(0, "size", errShort)
	}
	fence()
	_, err = r.f.WriteAt(b, int64(off))
	return err
}
