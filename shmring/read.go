package shmring

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"github.com/heapcam/heapcam/trace"
)

// Read gives committed blocks from the cursor on and moves the cursor behind them: as many whole blocks as fit into
// limit bytes, and at least one if any is committed, however large (at most the capacity). An empty batch says that
// nothing is there. What was read and never committed is given again to the next agent.
// Errors: ErrNotAcquired, ErrSuperseded, *ViolationError, I/O errors.
func (r *Ring) Read(limit int) (Batch, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return Batch{}, err
	}
	head, err := r.stableHead()
	if err != nil {
		return Batch{}, err
	}
	start := r.cursor
	avail := head - start // ≤ capacity: stableHead compared it with tail, and tail ≤ cursor ≤ head
	if avail == 0 {
		return Batch{Start: start, End: start}, nil
	}
	data, err := r.copyBlocks(start, avail, min(avail, uint64(max(limit, trace.BlockHeaderSize))))
	if err != nil {
		return Batch{}, err
	}
	// The copy counts only if nobody could write over it meanwhile: head may have moved, but not beyond what tail
	// allows.
	if _, err := r.stableHead(); err != nil {
		return Batch{}, err
	}
	r.cursor = start + uint64(len(data))
	r.newest = len(data)
	return Batch{Data: data, Start: start, End: r.cursor}, nil
}

// Commit gives everything before pos (a Batch's End) back to the probe. Call it after the data is where it survives
// the agent. A position that was not read or was committed before is a mistake of the caller and an error that
// changes nothing.
// Errors: ErrNotAcquired, ErrSuperseded, *ViolationError, I/O errors.
func (r *Ring) Commit(pos uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return err
	}
	if pos-r.tail > r.cursor-r.tail || pos%trace.BlockAlign != 0 {
		return errors.New("shmring: Commit of a position that was not read")
	}
	if err := r.put64(OffTail, pos); err != nil {
		return err
	}
	r.tail = pos
	if pos == r.cursor {
		r.release()
	}
	return nil
}

// Backlog gives the bytes that are committed and not yet read. Errors as Read.
func (r *Ring) Backlog() (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.owned(); err != nil {
		return 0, err
	}
	head, err := r.stableHead()
	return head - r.cursor, err
}

// owned checks that this Ring may read and write, and that header and tail are what they were.
func (r *Ring) owned() error {
	_, err := r.ours()
	return err
}

// ours is owned, and gives the counters of the header, without its texts.
func (r *Ring) ours() (Status, error) {
	if r.bad != nil {
		return Status{}, r.bad
	}
	if r.gen == 0 {
		return Status{}, ErrNotAcquired
	}
	s, err := r.counters(r.glanced[:])
	if err != nil {
		return s, err
	}
	if s.AgentGeneration != r.gen {
		r.bad = ErrSuperseded
		return s, r.bad
	}
	if s.Tail != r.tail {
		return s, r.quarantine(r.tail, "tail was rewritten", nil)
	}
	return s, nil
}

// stableHead reads head until two reads agree and checks it. Pairs with the probe's release store of head after the
// last byte of a commit: data before it is complete. Two reads: no kernel promises that a copy of eight bytes is one
// access.
func (r *Ring) stableHead() (uint64, error) {
	var b [8]byte
	var last uint64
	for i := range maxHeadTries {
		if err := readFull(r.f, b[:], OffHead); err != nil {
			return 0, r.quarantine(0, "head", err)
		}
		head := binary.LittleEndian.Uint64(b[:])
		if i > 0 && head == last {
			switch {
			case head-r.tail > r.capacity:
				return 0, r.quarantine(head, "head is more than the capacity ahead of tail, or behind it", nil)
			case r.gen != 0 && head-r.tail < r.lastHead-r.tail:
				return 0, r.quarantine(head, "head went back", nil)
			case head%trace.BlockAlign != 0:
				return 0, r.quarantine(head, "head is not aligned", nil)
			}
			if r.gen != 0 {
				r.lastHead = head
			}
			return head, nil
		}
		last = head
	}
	return 0, r.quarantine(last, "head never stands still", nil)
}

// copyBlocks copies whole blocks from position start on: as many as fit into limit bytes, and at least one. avail is
// what is committed from there on. Each byte is copied once: what follows counts on the header that was checked.
func (r *Ring) copyBlocks(start, avail, limit uint64) ([]byte, error) {
	var b []byte
	n := uint64(0) // bytes of whole blocks
	for n < avail {
		if n+trace.BlockHeaderSize > limit && n > 0 {
			break
		}
		var err error
		if b, err = r.copyTo(b, start, n+trace.BlockHeaderSize, avail); err != nil {
			return nil, err
		}
		if uint64(len(b)) < n+trace.BlockHeaderSize {
			return nil, r.quarantine(start+n, "a block is longer than what was committed", nil)
		}
		size, err := blockSize(b[n:])
		if err != nil {
			return nil, r.quarantine(start+n, "block header", err)
		}
		if size > avail-n {
			return nil, r.quarantine(start+n, "a block is longer than what was committed", nil)
		}
		if n > 0 && n+size > limit {
			break
		}
		if b, err = r.copyTo(b, start, n+size, avail); err != nil {
			return nil, err
		}
		if _, _, err := trace.ReadBlock(b[n : n+size]); err != nil {
			return nil, r.quarantine(start+n, "framing", err)
		}
		n += size
	}
	return b[:n], nil
}

// readAhead is how much is copied at least, bytes: small blocks come in one piece.
const readAhead = 32 << 10

// copyTo makes b, the copy from position start on, at least n bytes long, and at most avail. It is shorter if avail is.
func (r *Ring) copyTo(b []byte, start, n, avail uint64) ([]byte, error) {
	at := uint64(len(b))
	if n <= at {
		return b, nil
	}
	n = min(max(n, at+readAhead), avail)
	if uint64(cap(r.buf)) < n {
		r.grow(n, b)
	}
	b = r.buf[:n]
	for at < n {
		off := (start + at) & (r.capacity - 1)
		part := b[at : at+min(n-at, r.capacity-off)]
		if err := readFull(r.f, part, int64(r.header+off)); err != nil {
			return nil, r.quarantine(start+at, "data", err)
		}
		at += uint64(len(part))
	}
	return b, nil
}

// grow takes a buffer of at least n ≤ capacity bytes that begins with b.
func (r *Ring) grow(n uint64, b []byte) {
	old := r.buf
	if n > smallBuffer {
		r.buf = buffers.get(n, r.capacity)
	} else {
		r.buf = make([]byte, min(r.capacity, uint64(1)<<bits.Len64(n-1)))
	}
	copy(r.buf[:cap(r.buf)], b)
	buffers.put(old)
}

// release gives the buffer to the other rings, once its content is committed.
func (r *Ring) release() {
	if cap(r.buf) > smallBuffer {
		buffers.put(r.buf)
		r.buf = nil
	}
}

// quarantine makes err final. I/O errors other than a short read are the machine's, not the producer's: they are
// given as they are.
func (r *Ring) quarantine(pos uint64, why string, err error) error {
	if err != nil && !errors.Is(err, errShort) {
		var c *trace.CorruptError
		if !errors.As(err, &c) {
			return err
		}
	}
	r.bad = &ViolationError{Path: r.path, Pos: pos, Why: why, Err: err}
	return r.bad
}

var errShort = errors.New("file was truncated")

// readFull is an acquire: what is read after it is no older than b.
func readFull(f file, b []byte, off int64) error {
	n, err := f.ReadAt(b, off)
	fence()
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		return errShort
	}
	return err
}

// blockSize gives the size of the block whose header p begins with.
func blockSize(p []byte) (uint64, error) {
	n := binary.LittleEndian.Uint32(p[4:])
	if n > trace.MaxBlock {
		return 0, &trace.CorruptError{Offset: 4, Why: "length beyond MaxBlock"}
	}
	return uint64(trace.BlockSize(int(n))), nil
}

func isHex(b []byte) bool {
	for _, c := range b {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// newGeneration gives a random number that is neither 0 (no agent) nor the one before.
func newGeneration(before uint64) uint64 {
	for {
		var b [8]byte
		rand.Read(b[:]) // never fails (crypto/rand)
		if g := binary.LittleEndian.Uint64(b[:]); g != 0 && g != before {
			return g
		}
	}
}
