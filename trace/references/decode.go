package references

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrCorrupt says that a part is not what a recorder makes. ErrIncomplete says that parts are missing.
var (
	ErrCorrupt    = errors.New("corrupt reference listing")
	ErrIncomplete = errors.New("incomplete reference listing")
)

// reader reads numbers; its first error stays.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrCorrupt, why)
	}
	r.b = nil
}

// u reads a number of at most limit.
func (r *reader) u(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.fail("number")
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) byte(limit byte) byte {
	if len(r.b) == 0 || r.b[0] >= limit {
		r.fail("enumeration")
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// take takes n bytes.
func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("column")
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// count reads how many things follow, each of which takes a byte at least.
func (r *reader) count(limit uint64) int {
	n := r.u(limit)
	if n > uint64(len(r.b)) {
		r.fail("count")
		return 0
	}
	return int(n)
}
