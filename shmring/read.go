package shmring

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"

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
	want := min(avail, uint64(max(limit, trace.BlockHeaderSize)))
	data, err := r.copyOut(start, want)
	if err != nil {
		return Batch{}, err
	}
	n, err := r.framed(data, start)
	if err != nil {
		return Batch{}, err
	}
	if n == 0 { // the first block is larger than limit
		size, err := blockSize(data)
		if err != nil {
			return Batch{}, r.quarantine(start, "block header", err)
		}
		if size > avail {
			return Batch{}, r.quarantine(start, "a block is longer than what was committed", nil)
		}
		if data, err = r.copyOut(start, size); err != nil {
			return Batch{}, err
		}
		if n, err = r.framed(data, start); err != nil {
			return Batch{}, err
		}
		if n == 0 { // the length grew between the two copies
			return Batch{}, r.quarantine(start, "a block changed while it was read", nil)
		}
	}
	if uint64(n) < want && want == avail {
		return Batch{}, r.quarantine(start+uint64(n), "a block is longer than what was committed", nil)
	}
	// The copy counts only if nobody could write over it meanwhile: head may have moved, but not beyond what tail
	// allows.
	if _, err := r.stableHead(); err != nil {
		return Batch{}, err
	}
	r.cursor = start + uint64(n)
	return Batch{Data: data[:n], Start: start, End: r.cursor}, nil
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
	if r.bad != nil {
		return r.bad
	}
	if r.gen == 0 {
		return ErrNotAcquired
	}
	var h [headerUsed]byte
	s, err := r.status(h[:])
	if err != nil {
		return err
	}
	if s.AgentGeneration != r.gen {
		r.bad = ErrSuperseded
		return r.bad
	}
	if s.Tail != r.tail {
		return r.quarantine(r.tail, "tail was rewritten", nil)
	}
	return nil
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

// copyOut copies n ≤ capacity bytes from position pos into the Ring's buffer.
func (r *Ring) copyOut(pos, n uint64) ([]byte, error) {
	// a rare large block must not hold its memory for ever
	if uint64(cap(r.buf)) < n || uint64(cap(r.buf)) > 4*n+1<<20 {
		r.buf = make([]byte, n)
	}
	b := r.buf[:n]
	off := pos & (r.capacity - 1)
	first := min(n, r.capacity-off)
	if err := readFull(r.f, b[:first], int64(r.header+off)); err != nil {
		return nil, r.quarantine(pos, "data", err)
	}
	if first < n {
		if err := readFull(r.f, b[first:], int64(r.header)); err != nil {
			return nil, r.quarantine(pos+first, "data", err)
		}
	}
	return b, nil
}

// framed gives how many bytes of data whole blocks take.
func (r *Ring) framed(data []byte, start uint64) (int, error) {
	n := 0
	for n < len(data) {
		_, size, err := trace.ReadBlock(data[n:])
		if errors.Is(err, trace.ErrTorn) {
			break
		}
		if err != nil {
			return 0, r.quarantine(start+uint64(n), "framing", err)
		}
		n += size
	}
	return n, nil
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
