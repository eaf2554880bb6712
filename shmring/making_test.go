package shmring

import (
	"encoding/binary"
	"errors"
	"testing"
)

// TestRingInTheMaking opens a ring whose maker continues between any of our calls: it is not ready, or it opens, and
// never anything for good.
func TestRingInTheMaking(t *testing.T) {
	le := binary.LittleEndian
	steps := []func(m *memFile){
		func(m *memFile) { m.size = HeaderSize },
		func(m *memFile) {
			le.PutUint32(m.b[OffABI:], ABI)
			le.PutUint32(m.b[OffHeaderSize:], HeaderSize)
			le.PutUint64(m.b[OffCapacity:], MinCapacity)
			copy(m.b[OffSession:], "0123456789abcdef0123456789abcdef")
		},
		func(m *memFile) { m.size = HeaderSize + MinCapacity },
		func(m *memFile) { copy(m.b, Magic) },
	}
	opened := 0
	for script := range 1 << (2 * len(steps)) { // two bits a step: before which of our calls it comes
		m := &memFile{b: make([]byte, HeaderSize+MinCapacity)}
		call := 0
		done := 0
		m.step = func(m *memFile) {
			for done < len(steps) && script>>(2*done)&3 <= call {
				steps[done](m)
				done++
			}
			call++
		}
		r, err := newRing("ring", m, Options{})
		switch {
		case err == nil:
			opened++
			r.Close()
		case !errors.Is(err, ErrNotReady):
			t.Fatalf("script %b: %v", script, err)
		}
	}
	if opened == 0 {
		t.Error("it never opened")
	}
}
