package graph

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"reflect"
	"testing"

	"github.com/heapcam/heapcam/trace/references"
)

// kept gives what Write writes.
func kept(t testing.TB, g *Graph) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := g.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sample is a graph with objects of all levels, weak roots, and slots that lead nowhere.
func sample(t testing.TB) *Graph {
	t.Helper()
	l := generated(400)
	for i := range l.Roots[:20] {
		l.Roots[i].Kind, l.Roots[i].Thread, l.Roots[i].Line = references.StackLocal, "main", i
	}
	l.Roots[20].Kind = references.JNIWeak
	l.Slots[100] = l.Addr[50] + 2
	l.Missing = []string{"monitors"}
	l.Collection, l.Base = 7, 1<<36
	g, err := Build(l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestKept: what was kept is the graph that was built.
func TestKept(t *testing.T) {
	g := sample(t)
	b := kept(t, g)
	if n := int64(len(b)); n < g.KeptSize() || n > g.KeptSize()+100_000 {
		t.Errorf("%d bytes, expected about %d", n, g.KeptSize())
	}
	got, err := Read(nil, bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	got.L.Roots = g.L.Roots // those with known targets alone are kept
	for i := range got.L.Shapes {
		if g.L.Shapes[i].Fields == nil {
			g.L.Shapes[i].Fields = got.L.Shapes[i].Fields
		}
	}
	if !reflect.DeepEqual(got, g) {
		t.Errorf("got %+v\nwant %+v", got, g)
	}
	empty, err := Build(&references.Listing{First: []uint64{0}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	b = kept(t, empty)
	if got, err = Read(nil, bytes.NewReader(b), int64(len(b))); err != nil || got.Objects() != 0 {
		t.Fatal(err)
	}
}

// TestKeptDamaged: each bit of the file counts, and another version is not read.
func TestKeptDamaged(t *testing.T) {
	b := kept(t, sample(t))
	for at := range len(b) {
		if at > 500 && at%61 != 0 {
			continue
		}
		bad := bytes.Clone(b)
		bad[at] ^= 1 << (at % 8)
		if _, err := Read(nil, bytes.NewReader(bad), int64(len(bad))); !errors.Is(err, ErrKept) {
			t.Fatalf("byte %d: %v", at, err)
		}
		if _, err := Read(nil, bytes.NewReader(b[:at]), int64(len(b))); !errors.Is(err, ErrKept) {
			t.Fatalf("%d bytes: %v", at, err)
		}
	}
	b[8]++
	if _, err := Read(nil, bytes.NewReader(resummed(b)), int64(len(b))); !errors.Is(err, ErrKept) {
		t.Fatal(err)
	}
	failed := errors.New("disk")
	if _, err := Read(nil, io.MultiReader(bytes.NewReader(b[:20]), failing{failed}), int64(len(b))); err != failed {
		t.Fatal(err)
	}
	if err := sample(t).Write(failing{failed}); err != failed {
		t.Fatal(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

// resummed gives b with the right checksum.
func resummed(b []byte) []byte {
	b = bytes.Clone(b)
	if k := len(b) - keptEnd; k >= 0 {
		binary.LittleEndian.PutUint32(b[k:], crc32.Checksum(b[:k], castagnoli))
	}
	return b
}

// askAll asks a graph everything. It fails if the dominators of an object go in a circle.
func askAll(t *testing.T, g *Graph) {
	var all []Member
	for i := range g.Objects() {
		all = append(all, Member{Object: i, Weight: 1})
		if p, ok := g.PathTo(i); ok {
			_ = p.Text()
		}
		for d, steps := g.Dominator(i), 0; d != None; d, steps = g.Dominator(d), steps+1 {
			if steps > g.Objects() {
				t.Fatalf("the dominators of %d go in a circle", i)
			}
		}
		g.Retained(i)
		g.Strength(i)
	}
	h := g.Holders(all)
	_ = h.Lines()
	g.Biggest(10)
	g.Drop(g.Drops(10))
	g.RootKinds()
	g.Outermost()
	g.Ways(all)
	g.Evicts(all)
	g.Sums(3, func(i int) int { return i % 3 })
}

// FuzzKept: of a file that anybody may have written, with a right checksum, there is an error or a graph of which
// everything can be asked.
func FuzzKept(f *testing.F) {
	var small []byte
	for _, seed := range []string{"\x02\x01", "\x09\x07abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789" +
		"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyzabcdefghijk"} {
		g, err := Build(forged([]byte(seed), true), nil)
		if err != nil {
			f.Fatal(err)
		}
		small = kept(f, g)
		f.Add(small, 0, uint32(0), 0, uint32(0))
	}
	for at := 8; at < len(small); at += 3 {
		f.Add(small, at, uint32(at%5), at/2, 1<<32-1-uint32(at%7))
	}
	f.Fuzz(func(t *testing.T, b []byte, at int, v uint32, also int, w uint32) {
		b = bytes.Clone(b)
		for _, x := range []struct {
			at int
			v  uint32
		}{{at, v}, {also, w}} {
			if x.at > 0 && x.at+4 <= len(b) {
				binary.LittleEndian.PutUint32(b[x.at:], x.v)
			}
		}
		b = resummed(b)
		if g, err := Read(nil, bytes.NewReader(b), int64(len(b))); err == nil {
			askAll(t, g)
		} else if !errors.Is(err, ErrKept) {
			t.Fatal(err)
		}
	})
}
