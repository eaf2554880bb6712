package pull

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// hasher takes the SHA-256 of a file in a goroutine of its own. Buffers go to and fro: some are hashed while
// another one is filled. Owned by one goroutine, which calls stop in the end.
type hasher struct {
	sum  hash.Hash
	full chan []byte // closed by stop
	free chan []byte // buffers that may be written to
	done chan struct{}
	over bool
}

// hashBuffer is the size of a buffer, bytes, and hashBuffers their number: more would not stay in a cache.
const hashBuffer, hashBuffers = 128 << 10, 8

func newHasher() *hasher {
	h := &hasher{
		sum: sha256.New(), done: make(chan struct{}),
		full: make(chan []byte, hashBuffers), free: make(chan []byte, hashBuffers),
	}
	for range hashBuffers {
		h.free <- make([]byte, hashBuffer)
	}
	go func() {
		defer close(h.done)
		for b := range h.full {
			h.sum.Write(b)
			h.free <- b[:cap(b)]
		}
	}()
	return h
}

// buffer gives a buffer of hashBuffer bytes, which must come back by write.
func (h *hasher) buffer() []byte { return <-h.free }

// write hashes b, the first bytes of the last buffer. The caller may read b until it asks for the buffer after the
// next one, and must not change it.
func (h *hasher) write(b []byte) { h.full <- b }

// stop ends the goroutine. Calling it again does nothing.
func (h *hasher) stop() {
	if !h.over {
		h.over = true
		close(h.full)
	}
	<-h.done
}

// hex gives the digest of all that was written, as lower-case hexadecimal.
func (h *hasher) hex() string {
	h.stop()
	return hex.EncodeToString(h.sum.Sum(nil))
}
