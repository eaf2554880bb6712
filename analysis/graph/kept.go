package graph

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/heapcam/heapcam/internal/room"
	"github.com/heapcam/heapcam/trace/references"
)

// A kept graph is what Write gives: all that took time to find, so that Read needs neither the listing nor a search.
//
//	magic  version  meta bytes  objects  slots  nodes | meta | columns | CRC-32C of all before
//	8      u32      u32         u64      u64    u64                      u32
//
// All numbers are little-endian. The columns are those of keptColumns, u32 each, then the levels, a byte each. meta
// has names and roots (keptmeta.go). What follows from the rest is not kept: nodes of objects, and retained sizes.
//
// Read trusts nothing. What it gives can be asked anything without a panic or an endless loop, whoever wrote the file.
// That the answers are right, the checksum alone says: it finds damage, but not a forgery.
const (
	keptMagic   = "hc-graph"
	keptVersion = 1
	keptHead    = 40
	keptEnd     = 4
	// keptObject, keptSlot and keptNode are how many bytes an object, a slot and a node take.
	keptObject, keptSlot, keptNode = 5*4 + 1, 4, 2 * 4
	// maxMeta bounds the bytes of meta: names and roots in memory take up to 16 times as much. A graph that has more is
	// not kept.
	maxMeta = 64 << 20
)

// ErrKept says that a file is no kept graph of this version, or is damaged.
var ErrKept = errors.New("not a kept graph")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// KeptSize gives how many bytes Write writes, without names and roots.
func (g *Graph) KeptSize() int64 {
	return keptHead + keptEnd + int64(len(g.L.Addr))*keptObject + int64(len(g.L.Slots))*keptSlot +
		int64(len(g.vertex)-1)*keptNode
}

// Write writes what Read reads. Its error is that of w, or ErrTooLarge.
func (g *Graph) Write(w io.Writer) error {
	meta := g.meta()
	if len(meta) > maxMeta {
		return fmt.Errorf("%w: %d bytes of names", ErrTooLarge, len(meta))
	}
	k := &keeper{w: w, sum: crc32.New(castagnoli), b: make([]byte, 0, keptChunk)}
	head := binary.LittleEndian.AppendUint32([]byte(keptMagic), keptVersion)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(meta)))
	for _, n := range []int{len(g.L.Addr), len(g.L.Slots), len(g.vertex) - 1} {
		head = binary.LittleEndian.AppendUint64(head, uint64(n))
	}
	k.bytes(head)
	k.bytes(meta)
	k.column(g.L.Addr)
	k.column(g.L.Code)
	k.column(g.L.Words)
	for _, f := range g.L.First[1:] { // follow has refused more than 2^32 slots
		k.put(uint32(f))
	}
	k.column(g.L.Slots)
	k.column(g.parent)
	k.column(g.vertex[1:])
	k.column(g.idom[1:])
	k.bytes(g.level)
	k.flush()
	k.put(k.sum.Sum32())
	k.flush()
	return k.err
}

// keptChunk is how many bytes are written or read at once.
const keptChunk = 1 << 18

// keeper writes columns. Its first error stays.
type keeper struct {
	w   io.Writer
	sum hash.Hash32
	b   []byte
	err error
}

func (k *keeper) flush() {
	if k.err == nil && len(k.b) > 0 {
		k.sum.Write(k.b)
		_, k.err = k.w.Write(k.b)
	}
	k.b = k.b[:0]
}

func (k *keeper) put(v uint32) {
	if len(k.b)+4 > cap(k.b) {
		k.flush()
	}
	k.b = binary.LittleEndian.AppendUint32(k.b, v)
}

func (k *keeper) column(c []uint32) {
	for _, v := range c {
		k.put(v)
	}
}

func (k *keeper) bytes(b []byte) {
	for len(b) > 0 {
		if len(k.b) == cap(k.b) {
			k.flush()
		}
		n := min(len(b), cap(k.b)-len(k.b))
		k.b = append(k.b, b[:n]...)
		b = b[n:]
	}
}

// Read reads what Write wrote: size bytes. It makes no more memory than a file of that size can fill, for large arrays
// in to (BuildIn). Errors: ErrKept, and those of r.
func Read(to *room.Room, r io.Reader, size int64) (*Graph, error) {
	k := &keptReader{r: r, sum: crc32.New(castagnoli), room: to}
	head := k.bytes(keptHead)
	if k.err != nil {
		return nil, k.err
	}
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(head[at:]) }
	meta := uint64(binary.LittleEndian.Uint32(head[12:]))
	n, slots, nodes := u64(16), u64(24), u64(32)
	switch v := binary.LittleEndian.Uint32(head[8:]); {
	case string(head[:8]) != keptMagic:
		return nil, ErrKept
	case v != keptVersion:
		return nil, fmt.Errorf("%w: version %d", ErrKept, v)
	case meta > maxMeta || n > MaxObjects || slots >= uint64(dangling) || nodes > n:
		return nil, fmt.Errorf("%w: %d objects, %d slots, %d nodes", ErrKept, n, slots, nodes)
	case size < 0 || uint64(size) != keptHead+keptEnd+meta+n*keptObject+slots*keptSlot+nodes*keptNode:
		return nil, fmt.Errorf("%w: %d bytes", ErrKept, size)
	}
	g := &Graph{L: &references.Listing{}, room: to}
	if err := g.setMeta(k.bytes(int(meta))); err != nil {
		return nil, err
	}
	g.L.Addr, g.L.Code, g.L.Words = k.column(int(n), 0), k.column(int(n), 0), k.column(int(n), 0)
	g.L.First = k.wide(int(n))
	g.L.Slots, g.parent = k.column(int(slots), 0), k.column(int(n), 0)
	g.vertex, g.idom = k.column(int(nodes), 1), k.column(int(nodes), 1)
	g.level = k.bytes(int(n))
	is := k.sum.Sum32()
	if end := k.bytes(keptEnd); k.err == nil && binary.LittleEndian.Uint32(end) != is {
		k.err = fmt.Errorf("%w: damaged", ErrKept)
	}
	if k.err == nil {
		k.err = g.settle()
	}
	if k.err != nil {
		return nil, k.err
	}
	return g, nil
}

// keptReader reads columns. Its first error stays.
type keptReader struct {
	r    io.Reader
	room *room.Room
	sum  hash.Hash32
	b    [keptChunk]byte
	err  error
}

// fill fills b.
func (k *keptReader) fill(b []byte) {
	if k.err != nil {
		return
	}
	if _, err := io.ReadFull(k.r, b); err != nil {
		k.err = err
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			k.err = fmt.Errorf("%w: too short", ErrKept)
		}
	}
	k.sum.Write(b)
}

func (k *keptReader) bytes(n int) []byte {
	b := room.Make[byte](k.room, n)
	k.fill(b)
	return b
}

// chunk reads the next of n numbers that are left.
func (k *keptReader) chunk(left int) []byte {
	b := k.b[:min(4*left, len(k.b))]
	k.fill(b)
	return b
}

// column gives n numbers behind so many zeros.
func (k *keptReader) column(n, zeros int) []uint32 {
	c := room.Make[uint32](k.room, n+zeros)
	for to := c[zeros:]; len(to) > 0 && k.err == nil; {
		b := k.chunk(len(to))
		for i := range len(b) / 4 {
			to[i] = binary.LittleEndian.Uint32(b[4*i:])
		}
		to = to[len(b)/4:]
	}
	return c
}

// wide is column with one zero, of 64 bits.
func (k *keptReader) wide(n int) []uint64 {
	c := room.Make[uint64](k.room, n+1)
	for to := c[1:]; len(to) > 0 && k.err == nil; {
		b := k.chunk(len(to))
		for i := range len(b) / 4 {
			to[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
		}
		to = to[len(b)/4:]
	}
	return c
}

// settle checks what was read, and makes what follows from it.
func (g *Graph) settle() error {
	if err := g.L.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrKept, err)
	}
	n := uint32(len(g.L.Addr))
	for _, t := range g.L.Slots {
		if t > n && t != dangling {
			return fmt.Errorf("%w: a slot leads to object %d of %d", ErrKept, t, n)
		}
	}
	for i := range g.roots {
		if g.target[i] >= n {
			return fmt.Errorf("%w: a root holds object %d of %d", ErrKept, g.target[i], n)
		}
	}
	if err := g.checkParents(); err != nil {
		return err
	}
	if err := g.setTree(); err != nil {
		return err
	}
	g.setLoose()
	g.retain()
	return nil
}

// checkParents says whether each object that is reached has a path from a root, and no other one has.
func (g *Graph) checkParents() error {
	n := uint32(len(g.parent))
	done := make([]uint64, (n+63)/64) // objects whose paths end at a root
	var way []uint32
	for i := range n {
		if g.level[i] > unreached || g.level[i] == unreached != (g.parent[i] == 0) {
			return fmt.Errorf("%w: object %d of level %d", ErrKept, i, g.level[i])
		}
		if g.parent[i] == 0 {
			continue
		}
		way = way[:0]
		for v := i; done[v/64]>>(v%64)&1 == 0; {
			up := g.parent[v]
			if up == 0 || up > n && up-n > uint32(len(g.roots)) || len(way) > int(n) {
				return fmt.Errorf("%w: the path to object %d has no root", ErrKept, i)
			}
			way = append(way, v)
			if up > n {
				break
			}
			v = up - 1
		}
		for _, v := range way {
			done[v/64] |= 1 << (v % 64)
		}
	}
	return nil
}

// setTree makes the nodes of objects. Each live object must have one, and each dominator must be before what it
// dominates.
func (g *Graph) setTree() error {
	g.node = room.Make[uint32](g.room, len(g.L.Addr))
	for v := 1; v < len(g.vertex); v++ {
		o := g.vertex[v]
		if uint64(o) >= uint64(len(g.node)) || g.node[o] != 0 || !g.Live(int(o)) || g.idom[v] >= uint32(v) {
			return fmt.Errorf("%w: node %d of object %d, dominated by %d", ErrKept, v, o, g.idom[v])
		}
		g.node[o] = uint32(v)
	}
	live := 0
	for _, l := range g.level {
		if l <= levelFinal {
			live++
		}
	}
	if live != len(g.vertex)-1 {
		return fmt.Errorf("%w: %d nodes for %d live objects", ErrKept, len(g.vertex)-1, live)
	}
	return nil
}
