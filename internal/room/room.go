// Package room makes large arrays: in memory, or in a file that is mapped into memory, where they are larger than the
// memory that is left.
//
// A Room is such a file. It is in a folder of the caller's, has no name any more, and is gone when the process ends.
// Its size is set aside on the disk when it is made, so that no array runs out of disk space later. What does not fit
// is made in memory. Only Linux has Rooms; elsewhere New gives ErrUnsupported, and all arrays are in memory.
//
// Invariants: an array of a Room is valid until Free or Close. The garbage collector does not know such arrays, so the
// caller closes a Room only when nobody reads them any more, or never, as a verb does.
package room

import (
	"errors"
	"sync"
	"unsafe"
)

// ErrUnsupported says that this system, or the file system of the folder, has no Rooms.
var ErrUnsupported = errors.New("arrays cannot be in a file here")

// least is the size in bytes of the smallest array that is put into a Room.
const least = 64 << 10

// Room is a file for arrays; nil stands for memory. It is safe for concurrent use.
type Room struct {
	mu         sync.Mutex
	file       mapping
	size, used int64
	maps       map[*byte][]byte // by first byte
	at         map[*byte]int64  // where in the file
}

// mapping is the file of a Room.
type mapping interface {
	mapAt(at, n int64) ([]byte, error)
	unmap(b []byte, at int64) error // and gives its disk space back
	close() error
}

// New makes a Room of so many bytes in folder dir, which must exist. Errors: ErrUnsupported, and those of the file
// system: no space, for example.
func New(dir string, bytes int64) (*Room, error) {
	f, err := newMapping(dir, bytes)
	if err != nil {
		return nil, err
	}
	return &Room{file: f, size: bytes, maps: map[*byte][]byte{}, at: map[*byte]int64{}}, nil
}

// Make makes an array of zeros, in r if it fits there. T must not contain pointers.
func Make[T any](r *Room, n int) []T {
	if s := TryMake[T](r, uint64(n)); s != nil {
		return s
	}
	return make([]T, n)
}

// TryMake is Make, but gives nil if the array is not put into r.
func TryMake[T any](r *Room, n uint64) []T {
	size := uint64(unsafe.Sizeof(*new(T)))
	if r == nil || n > uint64(r.size)/size || n*size < least {
		return nil
	}
	b := r.take(int64(n * size))
	if b == nil {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n) // pages are aligned for all types
}

const page = 64 << 10 // the largest page of any system

func (r *Room) take(n int64) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = (n + page - 1) / page * page
	if n > r.size-r.used || r.file == nil {
		return nil
	}
	b, err := r.file.mapAt(r.used, n)
	if err != nil {
		return nil
	}
	r.maps[&b[0]], r.at[&b[0]] = b, r.used
	r.used += n
	return b
}

// Free gives an array back that nobody uses any more. One in memory is left to the garbage collector.
func Free[T any](r *Room, s []T) {
	if r == nil || cap(s) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := (*byte)(unsafe.Pointer(unsafe.SliceData(s)))
	if b, ok := r.maps[first]; ok {
		_ = r.file.unmap(b, r.at[first]) // then it stays until Close
		delete(r.maps, first)
		delete(r.at, first)
	}
}

// Used gives the bytes of all arrays that were made in r, freed ones included.
func (r *Room) Used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}

// Close removes r and all its arrays. No one may use them any more.
func (r *Room) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for first, b := range r.maps {
		errs = append(errs, r.file.unmap(b, r.at[first]))
	}
	errs = append(errs, r.file.close())
	r.maps, r.at, r.file = nil, nil, nil
	return errors.Join(errs...)
}
