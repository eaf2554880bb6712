package shmring

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzTakeOver changes words of the ring that takes over, each by an offset and a value, and cuts its file: whatever
// it holds, the reader moves to a ring that is as large as it says, of the same process and session, which goes
// on where the old one ended, or stays.
func FuzzTakeOver(f *testing.F) {
	word := func(off uint16, v uint64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint16(nil, off), v)
	}
	f.Add([]byte{}, uint32(0))
	f.Add(word(OffBase, 8), uint32(0))
	f.Add(word(OffCapacity, 1<<30), uint32(0))
	f.Add(word(OffPID, 7), uint32(4096))
	f.Add(append(word(OffHead, 1<<63), word(OffABI, 1|4096<<32)...), uint32(70000))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, script []byte, cut uint32) {
		le := binary.LittleEndian
		header := func() []byte {
			h := make([]byte, HeaderUsed)
			copy(h, Magic)
			le.PutUint32(h[OffABI:], ABI)
			le.PutUint32(h[OffHeaderSize:], HeaderSize)
			le.PutUint64(h[OffCapacity:], MinCapacity)
			le.PutUint32(h[OffPID:], 1<<22+1) // nobody's
			le.PutUint64(h[OffStartTicks:], 5)
			copy(h[OffSession:], "0123456789abcdef0123456789abcdef")
			le.PutUint64(h[OffHead:], 64)
			le.PutUint64(h[OffTail:], 64)
			le.PutUint64(h[OffBase:], 64)
			return h
		}
		path := filepath.Join(dir, FileName(1<<22+1, 5))
		write := func(path string, h []byte, size int64) {
			os.Remove(path)
			if err := errors.Join(os.WriteFile(path, h, 0o600), os.Truncate(path, size)); err != nil {
				t.Fatal(err)
			}
		}
		write(path, header(), HeaderSize+MinCapacity)
		h := header()
		for i := 0; i+10 <= len(script); i += 10 {
			le.PutUint64(h[le.Uint16(script[i:])%(HeaderUsed-8):], le.Uint64(script[i+2:]))
		}
		write(path+NextSuffix, h, max(0, HeaderSize+MinCapacity-int64(cut)))
		r, err := Open(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := r.Acquire(); err != nil {
			t.Fatal(err)
		}
		moved, err := r.follow(true)
		if moved == (err != nil) {
			t.Fatalf("moved %v, %v", moved, err)
		}
		if !moved {
			if r.bad == nil {
				t.Fatalf("no quarantine: %v", err)
			}
			return
		}
		size, _ := r.f.Size()
		if r.capacity > MaxCapacity || uint64(size) < r.header+r.capacity || r.tail != 64 ||
			r.Session() != "0123456789abcdef0123456789abcdef" ||
			le.Uint32(r.fixed[OffPID:]) != 1<<22+1 || le.Uint64(r.fixed[OffStartTicks:]) != 5 {
			t.Fatalf("went over to %+v", r.fixed)
		}
		r.Status()
		r.Read(1 << 20)
	})
}
