package e2e

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/trace/references"
)

// TestDumpedRoots takes a reference listing and then a heap dump by jcmd of a JVM whose threads all wait in between.
// Both have the same roots of each kind, but for those that explained names. A dump calls what the JVM itself holds JNI
// globals.
func TestDumpedRoots(t *testing.T) {
	tiers.Gate(t, "roots beside those of a heap dump by jcmd")
	t.Parallel()
	eachPair(t, []int{17, 25}, collectors, func(t *testing.T, major int, gc string) {
		dir, dump := dumpedByJcmd(t, major, gc)
		compareRoots(t, listed(t, dir), rootsOf(t, dump))
	})
}

// What a heap dump calls the kinds of roots that both have.
var dumpKinds = map[byte]references.RootKind{1: references.JNIGlobal, 2: references.JNILocal, 3: references.StackLocal,
	4: references.JNILocal, 5: references.LoaderRoot, 7: references.Monitor, 8: references.ThreadRoot}

type dumpRoots map[references.RootKind]map[uint64]bool

// rootsOf reads the roots of a heap dump: addresses by kind.
func rootsOf(t *testing.T, dump string) dumpRoots {
	t.Helper()
	f, err := os.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := &hprofInput{bufio.NewReaderSize(f, 1<<20), t}
	for in.u1() != 0 { // the name of the format
	}
	in.skip(4 + 8)
	roots := dumpRoots{}
	for {
		tag, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return roots
		}
		in.skip(4)
		n := int64(in.u4())
		if tag != 0x0c && tag != 0x1c {
			in.skip(n)
			continue
		}
		for n > 0 {
			n -= in.record(roots)
		}
	}
}

type hprofInput struct {
	*bufio.Reader
	t *testing.T
}

func (in *hprofInput) skip(n int64) {
	if _, err := io.CopyN(io.Discard, in.Reader, n); err != nil {
		in.t.Fatal(err)
	}
}

func (in *hprofInput) bytes(n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(in.Reader, b); err != nil {
		in.t.Fatal(err)
	}
	return b
}
func (in *hprofInput) u1() byte   { return in.bytes(1)[0] }
func (in *hprofInput) u2() uint16 { return binary.BigEndian.Uint16(in.bytes(2)) }
func (in *hprofInput) u4() uint32 { return binary.BigEndian.Uint32(in.bytes(4)) }
func (in *hprofInput) u8() uint64 { return binary.BigEndian.Uint64(in.bytes(8)) }

// Bytes of a value by its type in a heap dump.
var hprofSizes = map[byte]int64{2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}

// What follows the object of a root, in bytes.
var rootRest = map[byte]int64{0xff: 0, 1: 8, 2: 8, 3: 8, 4: 4, 5: 0, 6: 4, 7: 0, 8: 8}

// record reads one record of a segment, and gives its size.
func (in *hprofInput) record(roots dumpRoots) int64 {
	tag := in.u1()
	if rest, ok := rootRest[tag]; ok {
		k, ok := dumpKinds[tag]
		if !ok {
			in.t.Fatalf("a root of kind %#x", tag)
		}
		if roots[k] == nil {
			roots[k] = map[uint64]bool{}
		}
		roots[k][in.u8()] = true
		in.skip(rest)
		return 9 + rest
	}
	n := int64(0)
	switch tag {
	case 0x20: // a class
		in.skip(8 + 4 + 6*8 + 4)
		n = 8 + 4 + 6*8 + 4 + 3*2
		if in.u2() != 0 {
			in.t.Fatal("a constant pool")
		}
		for c := in.u2(); c > 0; c-- {
			in.skip(8)
			size := hprofSizes[in.u1()]
			in.skip(size)
			n += 9 + size
		}
		c := int64(in.u2())
		in.skip(9 * c)
		n += 9 * c
	case 0x21: // an instance
		in.skip(8 + 4 + 8)
		size := int64(in.u4())
		in.skip(size)
		n = 8 + 4 + 8 + 4 + size
	case 0x22: // an array of references
		in.skip(8 + 4)
		size := 8 * int64(in.u4())
		in.skip(8 + size)
		n = 8 + 4 + 4 + 8 + size
	case 0x23: // another array
		in.skip(8 + 4)
		c := int64(in.u4())
		size := c * hprofSizes[in.u1()]
		in.skip(size)
		n = 8 + 4 + 4 + 1 + size
	default:
		in.t.Fatalf("a record of kind %#x", tag)
	}
	return 1 + n
}

// compareRoots holds the roots of a listing against those of a dump, by kind.
func compareRoots(t *testing.T, l *references.Listing, dump dumpRoots) {
	t.Helper()
	ours, others, guessed := dumpRoots{}, map[uint64]bool{}, 0
	for _, r := range l.Roots {
		if r.Kind == references.StackLocal && r.Method == "" {
			guessed++ // a word on a stack, which a dump does not have
			continue
		}
		k := r.Kind
		if k == references.OtherRoot {
			k = references.JNIGlobal
			others[l.Base+uint64(r.Target-1)*8] = true
		}
		if ours[k] == nil {
			ours[k] = map[uint64]bool{}
		}
		ours[k][l.Base+uint64(r.Target-1)*8] = true
	}
	t.Logf("words on stacks: %d", guessed)
	name := func(a uint64) string {
		if i := l.Find(uint32((a-l.Base)/8) + 1); i >= 0 {
			return strings.TrimSpace(l.Shape(i).Name + " " + l.Shape(i).Of)
		}
		return "no object"
	}
	kinds := map[references.RootKind]bool{}
	for k := range ours {
		kinds[k] = true
	}
	for k := range dump {
		kinds[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		differ, same := map[string]int{}, 0
		for a := range ours[k] {
			if dump[k][a] {
				same++
			} else if k != references.JNIGlobal || !others[a] { // archived objects, too

				differ["listing alone: "+name(a)]++
			}
		}
		for a := range dump[k] {
			if !ours[k][a] {
				differ["dump alone: "+name(a)]++
			}
		}
		t.Logf("%s: %d the same", k, same)
		for _, d := range slices.Sorted(maps.Keys(differ)) {
			if !explained(k, d) {
				t.Errorf("%s %s: %d", k, d, differ[d])
			}
			if !strings.Contains(d, "java/lang/Class [") {
				t.Logf("  %s %s: %d", k, d, differ[d])
			}
		}
	}
}

// explained says whether a difference is one that is known. A dump has no roots for array classes and no threads that
// the JVM hides, and the thread that answers jcmd is newer than the listing. JNI locals of the listing alone are the
// probe's.
func explained(k references.RootKind, differs string) bool {
	alone, name, _ := strings.Cut(differs, " alone: ")
	switch k {
	case references.JNILocal:
		return alone == "listing" && (name == "java/lang/Object" || name == "java/lang/Class java/lang/Object")
	case references.LoaderRoot:
		return alone == "listing" && strings.HasPrefix(name, "java/lang/Class [")
	case references.ThreadRoot:
		return alone == "dump" && name == "no object" || name == "java/lang/Thread"
	}
	return false
}
