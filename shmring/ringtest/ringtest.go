// Package ringtest is a producer of shared rings in Go, for tests: it does what the probe does to the file, by pwrite
// where the probe has a mapping, and can be made to misbehave. It checks nothing that a test makes it write.
//
// Unless Mapped it does not map the file, so a Ring takes it for gone (exec) when it has not called Beat for five
// seconds. A test that shows anything else sets Mapped or Beats: on a busy machine five seconds pass between two steps.
package ringtest

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// Config describes a ring. The zero value is a 1 MiB ring of this process, in state recording.
type Config struct {
	ABI        uint32 // 0: the newest
	Capacity   uint64
	PID        uint32
	StartTicks uint64
	PIDNS      uint64
	Flags      uint32
	Session    string // 32 hex digits; "": random
	Probe, JVM string
	Name       string // of the file; "": as the format says
	Base       uint64 // where the ring before this one ended
	Starting   bool   // leave the magic out: Ready stores it
	Memfd      bool   // memory without a name (Linux), flagged so; Path is then for this process alone
	Mapped     bool   // as the probe has it: alive though silent; on Windows writes go through the mapping too
	Beats      bool   // stores the heartbeat by itself until Close: for a ring of another process, which maps nothing
}

type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(int64) error
}

// Producer writes one ring. It is not safe for concurrent use.
type Producer struct {
	Path     string
	Session  string
	f        file
	header   int
	config   Config
	capacity uint64
	head     uint64
	seq      uint64
	dropped  uint64
}

// Create makes a ring file in dir, or memory without a name.
func Create(dir string, c Config) (*Producer, error) {
	if c.Capacity == 0 {
		c.Capacity = shmring.MinCapacity
	}
	if c.PID == 0 {
		c.PID = uint32(os.Getpid())
	}
	if c.StartTicks == 0 {
		c.StartTicks = StartTicks(int(c.PID))
	}
	if c.Session == "" {
		var b [16]byte
		rand.Read(b[:])
		c.Session = hex.EncodeToString(b[:])
	}
	if c.Probe == "" {
		c.Probe = "ringtest"
	}
	if c.JVM == "" {
		c.JVM = "a JVM of tests"
	}
	if c.Name == "" {
		c.Name = shmring.FileName(c.PID, c.StartTicks)
	}
	path := filepath.Join(dir, c.Name)
	var f *os.File
	var err error
	if c.Memfd {
		c.Flags |= shmring.FlagMemfd
		f, path, err = memfd()
	} else {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, err
	}
	if c.ABI == 0 {
		c.ABI = shmring.ABI
	}
	header := shmring.HeaderSize
	if c.ABI == 1 {
		header = shmring.HeaderSize1
	}
	h := make([]byte, header)
	le := binary.LittleEndian
	le.PutUint32(h[shmring.OffABI:], c.ABI)
	le.PutUint32(h[shmring.OffHeaderSize:], uint32(header))
	le.PutUint64(h[shmring.OffBase:], c.Base)
	le.PutUint64(h[shmring.OffHead:], c.Base)
	le.PutUint64(h[shmring.OffTail:], c.Base)
	le.PutUint64(h[shmring.OffCapacity:], c.Capacity)
	le.PutUint32(h[shmring.OffPID:], c.PID)
	le.PutUint32(h[shmring.OffFlags:], c.Flags)
	le.PutUint64(h[shmring.OffStartTicks:], c.StartTicks)
	le.PutUint64(h[shmring.OffPIDNS:], c.PIDNS)
	copy(h[shmring.OffSession:shmring.OffSession+shmring.LenSession], c.Session)
	copy(h[shmring.OffProbeVersion:shmring.OffProbeVersion+shmring.LenProbeVersion-1], c.Probe)
	copy(h[shmring.OffJVM:shmring.OffJVM+shmring.LenJVM-1], c.JVM)
	le.PutUint32(h[shmring.OffState:], uint32(shmring.StateRecording))
	if c.Starting {
		le.PutUint32(h[shmring.OffState:], uint32(shmring.StateStarting))
	}
	p := &Producer{Path: path, Session: c.Session, f: f, header: header, capacity: c.Capacity, head: c.Base, config: c}
	if _, err = f.WriteAt(h, 0); err == nil {
		err = f.Truncate(int64(shmring.HeaderSize + c.Capacity))
	}
	if err == nil && c.Mapped {
		p.f, err = mapped(f, header+int(c.Capacity))
	}
	if err == nil {
		err = p.begin()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

// begin makes the ring complete and stores its first heartbeat.
func (p *Producer) begin() error {
	if !p.config.Starting {
		if err := p.Ready(); err != nil {
			return err
		}
	}
	if p.config.Beats {
		go beat(p.f)
	}
	return p.Beat()
}

// beat stores the heartbeat until the file is closed.
func beat(f file) {
	for {
		now := binary.LittleEndian.AppendUint64(nil, shmring.Monotonic())
		if _, err := f.WriteAt(now, shmring.OffHeartbeat); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Ready stores the magic: the ring is complete.
func (p *Producer) Ready() error {
	_, err := p.f.WriteAt([]byte(shmring.Magic), shmring.OffMagic)
	return err
}

// Close closes the file and leaves it, as a JVM that dies does.
func (p *Producer) Close() error { return p.f.Close() }

// Commit writes blocks and moves head behind them. Blocks with Seq 0 get the next number. If they do not fit all are
// dropped and counted as one epoch: ok is false.
func (p *Producer) Commit(blocks ...trace.Block) (ok bool, err error) {
	var b []byte
	seq := p.seq
	for _, x := range blocks {
		if x.Seq == 0 {
			seq++
			x.Seq = seq
		}
		b = trace.AppendBlock(b, x)
	}
	ok, err = p.CommitBytes(b)
	if ok {
		p.seq = seq
	}
	return ok, err
}

// CommitBytes commits what is already framed, or is not framed at all.
func (p *Producer) CommitBytes(b []byte) (ok bool, err error) {
	if uint64(len(b)) > p.Free() {
		p.dropped++
		return false, p.Poke64(shmring.OffEpochsDropped, p.dropped)
	}
	if err := p.WriteBehind(b); err != nil {
		return false, err
	}
	p.head += uint64(len(b))
	return true, p.Poke64(shmring.OffHead, p.head)
}

// Grow makes a ring of another capacity that takes over where this one ends, and writes there from now on. Whoever
// reads finds it by the state of the old one, which announce leaves out if it is false.
func (p *Producer) Grow(capacity uint64, announce bool) error {
	c := p.config
	c.Capacity, c.Base, c.Session = capacity, p.head, p.Session
	c.Name = filepath.Base(p.Path) + ".next"
	next, err := Create(filepath.Dir(p.Path), c)
	if err != nil {
		return err
	}
	if announce {
		err = p.Poke32(shmring.OffState, uint32(shmring.StateMoved))
	}
	err = errors.Join(err, p.f.Close())
	p.f, p.capacity, p.config = next.f, capacity, c
	return err
}

// EndWhenAsked does as the probe does after a detach: it beats until the agent asks for it, and ends. What it gives
// is closed then.
func (p *Producer) EndWhenAsked() <-chan error {
	done := make(chan error, 1)
	go func() {
		for p.Peek32(shmring.OffDetach) == 0 {
			if err := p.Beat(); err != nil {
				done <- err
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		done <- p.End(shmring.StateDetached, "")
	}()
	return done
}

// WriteBehind writes bytes behind head and does not commit them: a record begun and not finished.
func (p *Producer) WriteBehind(b []byte) error {
	for i := 0; i < len(b); {
		off := (p.head + uint64(i)) & (p.capacity - 1)
		n := min(uint64(len(b)-i), p.capacity-off)
		if _, err := p.f.WriteAt(b[i:i+int(n)], int64(uint64(p.header)+off)); err != nil {
			return err
		}
		i += int(n)
	}
	return nil
}

// Free gives the bytes that fit.
func (p *Producer) Free() uint64 { return p.capacity - (p.head - p.Peek64(shmring.OffTail)) }

// Capacity gives the bytes of data of the ring that is written to.
func (p *Producer) Capacity() uint64 { return p.capacity }

// PID gives the pid that the header names.
func (p *Producer) PID() uint32 { return p.config.PID }

// Head gives the position behind the last commit.
func (p *Producer) Head() uint64 { return p.head }

// State stores a state and its reason.
func (p *Producer) State(s shmring.State, reason string) error {
	b := make([]byte, shmring.LenReason)
	copy(b[:len(b)-1], reason)
	if _, err := p.f.WriteAt(b, shmring.OffReason); err != nil {
		return err
	}
	return p.Poke32(shmring.OffState, uint32(s))
}

// End commits an END block and stores the state: VM death, detached, or stopped after errors.
func (p *Producer) End(s shmring.State, reason string) error {
	why := map[shmring.State]uint64{shmring.StateDetached: trace.EndDetached, shmring.StateGaveUp: trace.EndGaveUp}[s]
	if why == 0 {
		why = trace.EndDeath
	}
	payload := append([]byte{49}, binary.AppendUvarint(binary.AppendUvarint(nil, 1), why)...)
	payload = append(binary.AppendUvarint(payload, uint64(len(reason))), reason...)
	if _, err := p.Commit(trace.Block{Kind: trace.KindEnd, Payload: payload}); err != nil {
		return err
	}
	return p.State(s, reason)
}

// Beat stores the heartbeat.
func (p *Producer) Beat() error { return p.Poke64(shmring.OffHeartbeat, shmring.Monotonic()) }

// Answer stores the newest value of a *_wanted word where it is answered; it gives how far the two were apart.
func (p *Producer) Answer(wanted, done int) (uint64, error) {
	w := p.Peek64(wanted)
	d := w - p.Peek64(done)
	return d, p.Poke64(done, w)
}

// Poke64 stores any word of the header.
func (p *Producer) Poke64(off int, v uint64) error {
	_, err := p.f.WriteAt(binary.LittleEndian.AppendUint64(nil, v), int64(off))
	return err
}

// Poke32 stores any half word of the header.
func (p *Producer) Poke32(off int, v uint32) error {
	_, err := p.f.WriteAt(binary.LittleEndian.AppendUint32(nil, v), int64(off))
	return err
}

// Peek64 reads a word of the header; 0 when it cannot.
func (p *Producer) Peek64(off int) uint64 {
	var b [8]byte
	_, _ = p.f.ReadAt(b[:], int64(off))
	return binary.LittleEndian.Uint64(b[:])
}

// Peek32 reads a half word of the header; 0 when it cannot.
func (p *Producer) Peek32(off int) uint32 {
	var b [4]byte
	_, _ = p.f.ReadAt(b[:], int64(off))
	return binary.LittleEndian.Uint32(b[:])
}

// Truncate cuts the file.
func (p *Producer) Truncate(size int64) error { return p.f.Truncate(size) }
