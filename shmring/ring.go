package shmring

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/heapcam/heapcam/trace"
)

// maxHeadTries bounds the wait for two reads of head that agree. The probe moves head at most once per collection or
// flush, thus a head that never stands still is somebody's play.
const maxHeadTries = 1000

// Options say what a ring must be like. The zero value demands nothing.
type Options struct {
	// CheckOwner demands that the file belongs to UID: the JVM's user, as the agent's namespace counts. An agent with
	// more rights than the JVM should set it: it is what keeps it from writing into files of others.
	CheckOwner bool
	UID        int
	// HostPID is the JVM's pid in the agent's namespace; 0: found by the header's pid, namespace and start time.
	HostPID int
	// PID and StartTicks, if not 0, must be in the header.
	PID        uint32
	StartTicks uint64
	// Away says that the JVM may be of another container or host: no process is looked for, the producer lives as
	// long as it holds its lock of the file (docs/format/shared-ring.md, rule 7). The file may have one name only.
	Away bool
	// MaxCapacity bounds the capacity in bytes, and with it the memory that Read may take; 0: the format's 1 GiB.
	MaxCapacity uint64
}

// file is what a Ring needs of its file; tests put a hostile one in its place.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	Lock() (bool, error) // exclusive, against other agents; false: taken
}

// Ring is one opened ring. Read, Commit and Wait belong to one goroutine; Status, Alive and the control setters may
// be called by others at the same time. Close ends it.
type Ring struct {
	path string
	f    file
	opt  Options
	id   identity // dev, inode, and the folder, for Unlink and Alive

	lookedAt time.Time // when Wait has seen whether the producer is alive; Wait's own, which one goroutine calls

	found atomic.Int64 // the JVM's pid as we count, once it was searched for

	hurryOnce sync.Once
	hurry     chan struct{} // closed by Hurry

	looked    sync.Mutex // guards what follows: what is known of the JVM's mappings
	lookedFor uint64     // inode
	lookAt    uint64     // when they are looked through again, ns
	gone      bool

	mu       sync.Mutex    // guards what follows, path, f and id, and the order of writes
	fixed    [OffHead]byte // the words that never change, as Open saw them
	header   uint64        // bytes before the data
	capacity uint64
	gen      uint64 // 0: not acquired
	tail     uint64 // as we stored it
	bad      error  // sticky
	beatAt   uint64 // when we last beat, ns

	cursor   uint64
	lastHead uint64
	newest   int // bytes that the newest Read gave; at first, as many as make Wait look often
	buf      []byte
	glanced  [headerUsed]byte // memory for ours
}

// Batch is what a Read gave. Data aliases the Ring's buffer: valid until the next Read or Commit. It holds whole blocks
// whose framing was checked (trace.Blocks over it gives no error); kinds, versions and payloads were not looked at.
type Batch struct {
	Data  []byte
	Start uint64 // position of Data[0]
	End   uint64 // what to Commit once Data is safe
}

// newRing checks the header of f. It does not close f on error.
func newRing(path string, f file, opt Options) (*Ring, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	if size < HeaderUsed {
		return nil, ErrNotReady
	}
	h := make([]byte, headerUsed)
	// The magic first, by itself: the probe stores it last.
	if err := readFull(f, h[:len(Magic)], OffMagic); err != nil {
		return nil, err
	}
	if magic := string(h[:len(Magic)]); magic != Magic {
		if magic == "\x00\x00\x00\x00\x00\x00\x00\x00" {
			return nil, ErrNotReady
		}
		return nil, &NotRingError{path, "no magic"}
	}
	if err := readFull(f, h, 0); err != nil {
		return nil, err
	}
	header := uint64(HeaderSize)
	switch abi := binary.LittleEndian.Uint32(h[OffABI:]); {
	case abi > ABI:
		return nil, &TooNewError{path, abi}
	case abi == 0:
		return nil, &NotRingError{path, "ABI 0"}
	case abi == 1:
		header = HeaderSize1
	}
	s := parseHeader(h)
	// Again: the file was made whole before its magic was stored, but maybe after we had asked for its size.
	if size, err = f.Size(); err != nil {
		return nil, err
	}
	limit := opt.MaxCapacity
	if limit == 0 || limit > MaxCapacity {
		limit = MaxCapacity
	}
	switch {
	case uint64(binary.LittleEndian.Uint32(h[OffHeaderSize:])) != header:
		return nil, &NotRingError{path, "header size"}
	case s.Capacity < MinCapacity || s.Capacity > MaxCapacity || s.Capacity&(s.Capacity-1) != 0:
		return nil, &NotRingError{path, "capacity is not a power of two between 1 MiB and 1 GiB"}
	case s.Capacity > limit:
		return nil, &NotRingError{path, "capacity is beyond the configured limit"}
	case uint64(size) < header+s.Capacity:
		return nil, &NotRingError{path, "file is shorter than header and capacity"}
	case !isHex(h[OffSession : OffSession+LenSession]):
		return nil, &NotRingError{path, "session is not hexadecimal"}
	case opt.PID != 0 && opt.PID != s.PID:
		return nil, &NotRingError{path, "made by another pid"}
	case opt.StartTicks != 0 && opt.StartTicks != s.StartTicks:
		return nil, &NotRingError{path, "made by an earlier process of this pid"}
	}
	r := &Ring{path: path, f: f, opt: opt, header: header, capacity: s.Capacity, tail: s.Tail, cursor: s.Tail,
		newest: much, hurry: make(chan struct{})}
	copy(r.fixed[:], h)
	return r, nil
}

// Away says that the ring was opened with Options.Away.
func (r *Ring) Away() bool { return r.opt.Away }

// Path gives the path that the ring was opened by. A ring that takes over gets the same one.
func (r *Ring) Path() string { return r.path }

// Capacity gives the bytes of data that the ring holds.
func (r *Ring) Capacity() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.capacity
}

// Session gives the recording session's 32 hex digits; it names one load of the probe.
func (r *Ring) Session() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.fixed[OffSession : OffSession+LenSession])
}

// Close closes the file and gives the ring free for another agent. It changes no word: a probe takes the silence of
// the heartbeat for what it is.
func (r *Ring) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id.close()
	return r.f.Close()
}

// follow moves to the larger ring that the probe has made where this one ends. All of this one has been
// committed. Control words and generation are carried over, so that nothing that was asked for is lost. must: that
// there is none is a violation. Errors as Read.
func (r *Ring) follow(must bool) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return false, err
	}
	if r.tail != r.lastHead || r.cursor != r.tail {
		return false, nil
	}
	next, err := r.successor()
	if err != nil && short(err) { // this machine lacks something: the next poll tries again
		return false, nil
	}
	if err != nil || next == nil {
		if must {
			return false, r.quarantine(r.tail, "the ring that takes over can not be opened", errors.Join(err, errShort))
		}
		return false, nil
	}
	err = r.takeOver(next)
	if err != nil {
		next.f.Close()
		return false, err
	}
	return true, nil
}

func (r *Ring) takeOver(next *Ring) error {
	h := make([]byte, headerUsed)
	s, err := next.status(h)
	if err != nil {
		return r.quarantine(r.tail, "the ring that takes over", errShort)
	}
	// What was checked when this ring was opened, whose process it names above all, must hold for the next one.
	if !r.sameJVM(h) || s.Base != r.tail || s.Tail != s.Base {
		return r.quarantine(r.tail, "the ring that takes over does not begin where this one ends", nil)
	}
	if ok, err := next.f.Lock(); err != nil || !ok {
		return cmp.Or(err, ErrSuperseded)
	}
	next.gen, next.lastHead = r.gen, s.Base
	if err := r.putWords(next); err != nil {
		return err
	}
	if err := errors.Join(next.beat(), next.put64(OffAgentGeneration, next.gen),
		next.put64(OffSlices, next.gen)); err != nil {
		return err
	}
	if ok, err := r.rename(next.id); err != nil || !ok {
		return r.quarantine(r.tail, "the ring that takes over was replaced while it was read",
			errors.Join(err, errShort))
	}
	old := r.f
	r.f, r.fixed, r.header, r.capacity, r.beatAt, r.buf = next.f, next.fixed, next.header, next.capacity, next.beatAt,
		nil
	r.id.become(next.id)
	r.tail, r.cursor, r.lastHead = s.Base, s.Base, s.Base
	old.Close()
	return nil
}

// Status reads the header. Errors: *ViolationError (the header was rewritten, the file truncated), I/O errors.
func (r *Ring) Status() (Status, error) {
	h := make([]byte, headerUsed)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status(h)
}

func (r *Ring) status(h []byte) (Status, error) {
	s, err := r.counters(h)
	if err == nil {
		s.texts(h)
	}
	return s, err
}

// counters is status without the texts.
func (r *Ring) counters(h []byte) (Status, error) {
	if r.bad != nil {
		return Status{}, r.bad
	}
	if err := readFull(r.f, h, 0); err != nil {
		return Status{}, r.quarantine(0, "header", err)
	}
	// One copy takes its bytes in any order, and a state covers what was written before it. One that is the last gets
	// a second copy, whose text and counters are those of that state or later ones.
	if State(binary.LittleEndian.Uint32(h[OffState:])) >= StateRefused {
		if err := readFull(r.f, h, 0); err != nil {
			return Status{}, r.quarantine(0, "header", err)
		}
	}
	if !bytes.Equal(h[:OffHead], r.fixed[:]) {
		return Status{}, r.quarantine(0, "the header's fixed part was rewritten", nil)
	}
	return parseCounters(h), nil
}

// Acquire makes this Ring the ring's agent: it takes the lock, writes a new generation and the heartbeat, and
// continues from tail. When an agent was there before, it asks for the definitions anew (redefine: this agent has not
// seen them); fresh says that none was.
// Errors: ErrBusy, *ViolationError, I/O errors.
func (r *Ring) Acquire() (fresh bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gen != 0 {
		return false, nil
	}
	ok, err := r.f.Lock()
	if err != nil {
		return false, err
	}
	if !ok {
		return false, ErrBusy
	}
	s, err := r.status(make([]byte, headerUsed))
	if err != nil {
		return false, err
	}
	if s.Tail%trace.BlockAlign != 0 {
		return false, r.quarantine(s.Tail, "tail is not aligned", nil)
	}
	r.tail, r.cursor = s.Tail, s.Tail
	head, err := r.stableHead()
	if err != nil {
		return false, err
	}
	r.lastHead = head
	if err := r.beat(); err != nil {
		return false, err
	}
	gen := newGeneration(s.AgentGeneration)
	if err := r.put64(OffAgentGeneration, gen); err != nil {
		return false, err
	}
	if err := r.put64(OffSlices, gen); err != nil {
		return false, err
	}
	r.gen = gen
	if s.AgentGeneration == 0 && s.Tail == 0 {
		return true, nil
	}
	return false, r.put64(OffRedefine, s.Redefine+1)
}
