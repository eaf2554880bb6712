package shmring

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

// memFile is a file whose owner changes it between any two of our calls.
type memFile struct {
	b    []byte
	size int64
	step func(f *memFile)
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.step(f)
	if off >= f.size {
		return 0, io.EOF
	}
	n := copy(p, f.b[off:min(f.size, int64(len(f.b)))])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if off < OffTail || off+int64(len(p)) > OffReason {
		panic("a write outside the agent's words")
	}
	return copy(f.b[off:], p), nil
}

func (f *memFile) Close() error         { return nil }
func (f *memFile) Size() (int64, error) { f.step(f); return f.size, nil }
func (f *memFile) Lock() (bool, error)  { return true, nil }

// FuzzHostile: data is what the ring holds; script is what its owner does to the header between our calls, four bytes
// a deed: when, which word, which byte of it, value.
func FuzzHostile(f *testing.F) {
	block := trace.AppendBlock(nil, trace.Block{Kind: trace.KindEpoch, Seq: 1, Payload: make([]byte, 100)})
	f.Add(append(block, block...), []byte{}, uint32(2*len(block)), uint32(0))
	f.Add(append(block, block...), []byte{9, OffHead / 8, 1, 7, 3, OffTail / 8, 0, 1, 2, 255, 0, 0},
		uint32(2*len(block)), uint32(1<<20-64))
	f.Add(block, []byte{1, 2, 2, 0x20, 1, 1, 0, 9, 12, 0, 0, 0}, uint32(1<<20), uint32(8))
	f.Fuzz(func(t *testing.T, data, script []byte, head, tail uint32) {
		script = script[:min(len(script), 256)]
		m := &memFile{b: make([]byte, HeaderSize+MinCapacity), size: HeaderSize + MinCapacity}
		copy(m.b, Magic)
		le := binary.LittleEndian
		le.PutUint32(m.b[OffABI:], ABI)
		le.PutUint32(m.b[OffHeaderSize:], HeaderSize)
		le.PutUint64(m.b[OffCapacity:], MinCapacity)
		copy(m.b[OffSession:], "0123456789abcdef0123456789abcdef")
		le.PutUint64(m.b[OffHead:], uint64(tail)+uint64(head))
		le.PutUint64(m.b[OffTail:], uint64(tail))
		for i, x := range data {
			m.b[HeaderSize+(int(tail)+i)%MinCapacity] = x
		}
		calls := 0
		m.step = func(m *memFile) {
			calls++
			for i := 0; i+4 <= len(script); i += 4 {
				if int(script[i]) != calls {
					continue
				}
				if script[i+1] == 255 { // truncation
					m.size = int64(script[i+2])<<8 | int64(script[i+3])
					continue
				}
				m.b[int(script[i+1])*8+int(script[i+2]%8)] = script[i+3]
			}
		}
		r, err := newRing("ring", m, Options{MaxCapacity: MinCapacity})
		if err != nil {
			_ = err.Error()
			return
		}
		if _, err := r.Acquire(); err != nil {
			_ = err.Error()
			return
		}
		var total uint64
		for range 64 {
			b, err := r.Read(1000)
			if err != nil {
				var v *ViolationError
				if !errors.As(err, &v) && !errors.Is(err, ErrSuperseded) {
					t.Fatalf("%v", err)
				}
				if _, err := r.Read(1000); err == nil {
					t.Fatal("quarantine was left")
				}
				break
			}
			if b.End-b.Start != uint64(len(b.Data)) || len(b.Data) > MinCapacity || cap(r.buf) > MinCapacity {
				t.Fatalf("%d bytes from %d to %d, buffer %d", len(b.Data), b.Start, b.End, cap(r.buf))
			}
			for x, err := range trace.Blocks(b.Data) {
				if err != nil {
					t.Fatalf("what Read gave is not framed: %v", err)
				}
				_ = x.Size()
			}
			if len(b.Data) == 0 {
				break
			}
			total += uint64(len(b.Data))
			if total%3 == 0 {
				r.Commit(b.End)
			}
		}
		r.SetDepth(2)
		r.RequestSync()
		r.RequestEmergency(MethodWalk)
		if s, err := r.Status(); err == nil {
			_ = s.State.String()
			_ = s.Backlog()
			_ = s.AgentAlive()
			if s.State.Ended() {
				r.Alive() // otherwise it searches /proc: slow, and not what is tried here
			}
		}
	})
}
