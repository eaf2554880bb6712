package shmring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/trace"
)

// Ring is the agent's side of one shared ring. It is used by one goroutine.
type Ring struct {
	f        *os.File
	path     string
	capacity uint64
	tail     uint64
	buf      []byte
}

// Open opens the ring file at path and checks its header. A file that is not ready yet gives ErrNotReady: try again.
// The file may belong to anyone; nothing in it is trusted.
func Open(path string) (*Ring, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open shared ring %s: %w", path, err)
	}
	r := &Ring{f: os.NewFile(uintptr(fd), path), path: path}
	if err := r.check(); err != nil {
		r.f.Close()
		return nil, err
	}
	return r, nil
}

func (r *Ring) check() error {
	var st unix.Stat_t
	if err := unix.Fstat(int(r.f.Fd()), &st); err != nil {
		return fmt.Errorf("shared ring %s: %w", r.path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return &QuarantineError{Path: r.path, Why: "not a regular file"}
	}
	if st.Size < headerSize {
		return fmt.Errorf("shared ring %s: %w", r.path, ErrNotReady)
	}
	var h [headerSize]byte
	if _, err := r.f.ReadAt(h[:], 0); err != nil {
		return fmt.Errorf("shared ring %s: %w", r.path, err)
	}
	if string(h[:8]) != magic {
		if string(h[:8]) == "\x00\x00\x00\x00\x00\x00\x00\x00" {
			return fmt.Errorf("shared ring %s: %w", r.path, ErrNotReady)
		}
		return &QuarantineError{Path: r.path, Why: "no magic"}
	}
	if abi := binary.LittleEndian.Uint32(h[offABI:]); abi != abiVersion {
		return &TooNewError{Path: r.path, ABI: abi}
	}
	r.capacity = binary.LittleEndian.Uint64(h[offCapacity:])
	switch {
	case binary.LittleEndian.Uint32(h[offHeaderSize:]) != headerSize:
		return &QuarantineError{Path: r.path, Why: "header size"}
	case r.capacity < minCapacity || r.capacity > maxCapacity || r.capacity&(r.capacity-1) != 0:
		return &QuarantineError{Path: r.path, Why: "capacity"}
	case uint64(st.Size) < headerSize+r.capacity:
		return &QuarantineError{Path: r.path, Why: "shorter than its capacity"}
	}
	r.tail = binary.LittleEndian.Uint64(h[offTail:])
	return nil
}

// Path is the name that the ring was opened by.
func (r *Ring) Path() string { return r.path }

// Close closes the file; the ring stays.
func (r *Ring) Close() error { return r.f.Close() }

// Unlink removes the file.
func (r *Ring) Unlink() error { return os.Remove(r.path) }

// Tail is the position up to which everything is committed as read.
func (r *Ring) Tail() uint64 { return r.tail }

func (r *Ring) u64(off int64) (uint64, error) {
	var b [8]byte
	if n, err := r.f.ReadAt(b[:], off); n != 8 {
		return 0, &QuarantineError{Path: r.path, Why: "truncated", Err: err}
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

// stable reads a word that another process writes until two reads agree: a copy through the kernel need not be atomic.
func (r *Ring) stable(off int64) (uint64, error) {
	a, err := r.u64(off)
	for i := 0; err == nil && i < 100; i++ {
		var b uint64
		if b, err = r.u64(off); a == b {
			return a, err
		}
		a = b
	}
	if err == nil {
		err = &QuarantineError{Path: r.path, Why: "head never stands still"}
	}
	return 0, err
}

func (r *Ring) put64(off int64, v uint64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	_, err := r.f.WriteAt(b[:], off)
	return err
}

func (r *Ring) put32(off int64, v uint32) error {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	_, err := r.f.WriteAt(b[:], off)
	return err
}

// Read copies whole committed blocks out, at most max bytes of them (but at least one block), and returns the position behind them.
// The slice is valid until the next Read. No blocks: nil and the present position. A QuarantineError means the producer broke the protocol.
func (r *Ring) Read(max int) ([]byte, uint64, error) {
	head, err := r.stable(offHead)
	if err != nil {
		return nil, 0, err
	}
	n := head - r.tail
	if head < r.tail || n > r.capacity || n%trace.BlockAlign != 0 {
		return nil, 0, &QuarantineError{Path: r.path, Why: fmt.Sprintf("head %d and tail %d do not fit a ring of %d bytes", head, r.tail, r.capacity)}
	}
	if n == 0 {
		return nil, r.tail, nil
	}
	// First by framing alone, so that a sync point larger than max is still taken whole.
	end := uint64(0)
	for end < n {
		var h [trace.BlockHeaderSize]byte
		if n-end < trace.BlockHeaderSize {
			return nil, 0, &QuarantineError{Path: r.path, Why: "a block header is cut off"}
		}
		if err := r.copyAt(h[:], r.tail+end); err != nil {
			return nil, 0, err
		}
		size := uint64(trace.BlockSize(int(binary.LittleEndian.Uint32(h[4:]))))
		if size > n-end {
			return nil, 0, &QuarantineError{Path: r.path, Why: fmt.Sprintf("a block of %d bytes at %d runs past head", size, r.tail+end)}
		}
		if end > 0 && end+size > uint64(max) {
			break
		}
		end += size
	}
	if uint64(cap(r.buf)) < end {
		r.buf = make([]byte, end)
	}
	b := r.buf[:end]
	if err := r.copyAt(b, r.tail); err != nil {
		return nil, 0, err
	}
	// The copy is what counts: check it, not the file.
	for at := 0; at < len(b); {
		_, size, err := trace.ReadBlock(b[at:])
		if err != nil {
			return nil, 0, &QuarantineError{Path: r.path, Why: fmt.Sprintf("block at %d", r.tail+uint64(at)), Err: err}
		}
		at += size
	}
	return b, r.tail + end, nil
}

func (r *Ring) copyAt(b []byte, pos uint64) error {
	at := pos & (r.capacity - 1)
	first := min(uint64(len(b)), r.capacity-at)
	if n, err := r.f.ReadAt(b[:first], int64(headerSize+at)); uint64(n) != first {
		return &QuarantineError{Path: r.path, Why: "truncated", Err: err}
	}
	if rest := b[first:]; len(rest) > 0 {
		if n, err := r.f.ReadAt(rest, headerSize); n != len(rest) {
			return &QuarantineError{Path: r.path, Why: "truncated", Err: err}
		}
	}
	return nil
}

// Commit tells the producer that everything before pos is persisted and may be overwritten.
func (r *Ring) Commit(pos uint64) error {
	if pos < r.tail || pos-r.tail > r.capacity {
		return fmt.Errorf("shared ring %s: commit of %d behind tail %d", r.path, pos, r.tail)
	}
	if err := r.put64(offTail, pos); err != nil {
		return err
	}
	r.tail = pos
	return nil
}

// Status reads the header words.
func (r *Ring) Status() (Status, error) {
	var h [headerSize]byte
	if n, err := r.f.ReadAt(h[:], 0); n != headerSize {
		return Status{}, &QuarantineError{Path: r.path, Why: "truncated", Err: err}
	}
	u := func(off int) uint64 { return binary.LittleEndian.Uint64(h[off:]) }
	u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(h[off:]) }
	text := func(off, n int) string {
		s, _, _ := strings.Cut(string(h[off:off+n]), "\x00")
		return trace.CleanString([]byte(s))
	}
	return Status{
		Capacity: r.capacity, PID: u32(offPID), Flags: u32(offFlags), StartTicks: u(offStartTicks), PIDNS: u(offPIDNS),
		Session: text(offSession, 32), Probe: text(offProbeVersion, 48), Head: u(offHead), State: State(u32(offState)), Depth: u32(offDepthNow),
		Heartbeat: u(offHeartbeat), Epochs: u(offEpochs), EpochsDropped: u(offEpochsDropped), EpochsFailed: u(offEpochsFailed),
		Samples: u(offSamples), SamplesDropped: u(offSamplesDropped), SyncDone: u(offSyncDone), EmergencyDone: u(offEmergencyDone),
		RedefineDone: u(offRedefineDone), ProbeNS: u(offProbeNS), PauseNS: u(offPauseNS), LastSyncBytes: u(offLastSyncBytes),
		LiveBytes: u(offLiveBytes), SampleNS: u(offSampleNS), Tail: u(offTail), Generation: u(offGeneration), SyncWanted: u(offSyncWanted),
		Emergency: u(offEmergency), Redefine: u(offRedefine), AgentHeartbeat: u(offAgentHeartbeat),
		Reason: text(offReason, 512), JVM: text(offJVM, 512),
	}, nil
}

func (r *Ring) raise(off int64) (uint64, error) {
	v, err := r.u64(off)
	if err != nil {
		return 0, err
	}
	return v + 1, r.put64(off, v+1)
}

// Heartbeat tells the probe that somebody reads.
func (r *Ring) Heartbeat() error {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return err
	}
	return r.put64(offAgentHeartbeat, uint64(ts.Nano()))
}

// Adopt makes this process the reader: a new generation, and all definitions asked for anew.
func (r *Ring) Adopt(generation uint64) error {
	if err := r.put64(offGeneration, generation); err != nil {
		return err
	}
	if err := r.Heartbeat(); err != nil {
		return err
	}
	_, err := r.raise(offRedefine)
	return err
}

// WantSync asks for a sync point in the next natural collection.
func (r *Ring) WantSync() error { _, err := r.raise(offSyncWanted); return err }

// Emergency asks for a sync point now, by method (1 walk, 2 gc, 3 oracle).
func (r *Ring) Emergency(method uint32) error {
	if err := r.put32(offEmergencyMethod, method); err != nil {
		return err
	}
	_, err := r.raise(offEmergency)
	return err
}

// SetDepth changes the depth (1 samples, 2 survivors, 3 full) from the next collection on.
func (r *Ring) SetDepth(d uint32) error { return r.put32(offDepthWanted, d) }

// SetInterval changes the sampling interval in bytes; 0 samples every allocation.
func (r *Ring) SetInterval(bytes uint64) error { return r.put64(offIntervalWanted, bytes+1) }

// Pause stops recording until it is called with false.
func (r *Ring) Pause(on bool) error {
	v := uint32(0)
	if on {
		v = 1
	}
	return r.put32(offPause, v)
}

// Detach asks the probe to stop for good.
func (r *Ring) Detach() error { return r.put32(offDetach, 1) }

// Alive says whether a process of the pid and start time that the header names exists in the namespace of this process or of hostPID.
func Alive(hostPID int, ticks uint64) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", hostPID))
	if err != nil {
		return false
	}
	i := strings.LastIndexByte(string(b), ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return false
	}
	var t uint64
	_, err = fmt.Sscan(f[19], &t)
	return err == nil && (ticks == 0 || t == ticks)
}

// Wait sleeps until there is something to read, d has passed, or ctx is done. Polling, because the producer makes no system calls in a pause.
func (r *Ring) Wait(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for {
		head, err := r.stable(offHead)
		if err != nil || head != r.tail || !time.Now().Before(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(10*time.Millisecond, time.Until(end))):
		}
	}
}

// IsGone reports whether err says that the file has vanished.
func IsGone(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESTALE) }
