package segment

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/heapcam/heapcam/ringstore/vfs"
)

// disk is a file in memory whose operations fail when a test says so.
type disk struct {
	b     []byte
	ahead int64
	write error // of the next write, which leaves half of it
	good  int   // so many writes come before it
	cut   error // of truncations
}

func (d *disk) ReadAt(b []byte, at int64) (int, error) { return bytes.NewReader(d.b).ReadAt(b, at) }

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	n, err := len(b), d.write
	if d.good--; err != nil && d.good >= 0 {
		err = nil
	} else if err != nil {
		n, d.write = n/2, nil
	}
	d.b = append(d.b[:at], b[:n]...)
	return n, err
}

func (d *disk) Truncate(n int64) error {
	if d.cut == nil {
		d.b, d.ahead = d.b[:n], 0
	}
	return d.cut
}

func (d *disk) Allocate(at, n int64) error { d.ahead = at + n; return nil }
func (d *disk) TryLock(bool) (bool, error) { return true, nil }
func (d *disk) Sync() error                { return nil }
func (d *disk) Close() error               { return nil }
func (d *disk) Info() (vfs.Info, error) {
	return vfs.Info{Size: int64(len(d.b)), Blocks: vfs.Occupied(max(int64(len(d.b)), d.ahead)), Links: 1}, nil
}

// begin makes a segment with a head of its own on a disk.
func begin(t *testing.T) (d *disk, w *Writer, frame func(string) []byte, faults *[]error) {
	p, err := NewPacker(None, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	h := Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	all := p.Frame(h.Encode(), []byte("head"), FrameInfo{Flags: FlagHead})
	d, faults = &disk{b: bytes.Clone(all)}, new([]error)
	w = NewWriter(d, "00000001.hcr", all, nil, func(err error) { *faults = append(*faults, err) })
	return d, w, func(s string) []byte { return p.Frame(nil, []byte(s), FrameInfo{}) }, faults
}

func payloads(t *testing.T, d *disk) (out string, sealed bool) {
	f, err := NewFile("00000001.hcr", d, int64(len(d.b)))
	if err != nil {
		t.Fatal(err)
	}
	for fr, err := range f.Frames() {
		if err != nil {
			t.Error(err)
		}
		out += string(fr.Payload) + " "
	}
	return out, f.Sealed()
}

// TestWriter: after a write that failed nothing of its frame is in the segment, whether what it left can be cut off at
// once or only at the next Append.
func TestWriter(t *testing.T) {
	for _, cut := range []error{nil, errors.New("no truncation")} {
		d, w, frame, faults := begin(t)
		if err := w.Append(frame("one")); err != nil {
			t.Fatal(err)
		}
		size := w.Size()
		d.write, d.cut = io.ErrShortWrite, cut
		if err := w.Append(frame("lost")); !errors.Is(err, io.ErrShortWrite) || w.Size() != size || w.Frames() != 2 {
			t.Fatalf("%v, %d bytes, %d frames", err, w.Size(), w.Frames())
		}
		if err := w.Mend(); !errors.Is(err, cut) {
			t.Fatal(err)
		}
		d.cut = nil
		if err := w.Mend(); err != nil || int64(len(d.b)) != size {
			t.Fatalf("%v, %d bytes, want %d", err, len(d.b), size)
		}
		if err := w.Append(frame("two")); err != nil || w.Distrusted() {
			t.Fatal(err)
		}
		if err := w.Allocate(1 << 20); err != nil || w.Occupies() > 1<<20 && w.Ahead() != 1<<20 {
			t.Fatal(err)
		}
		out := w.Seal()
		if got, sealed := payloads(t, d); got != "head one two " || !sealed {
			t.Errorf("%q, sealed %v", got, sealed)
		}
		if want := vfs.Occupied(int64(len(d.b))); out.Size != want || out.Cut != 0 || d.ahead != 0 {
			t.Errorf("%+v, want %d bytes, and nothing taken ahead", out, want)
		}
		if n := len(*faults); cut == nil && n != 1 || cut != nil && n != 3 {
			t.Errorf("faults: %v", *faults)
		}
	}
}

// TestSealFails: a segment whose index cannot be written says up to where it is to be cut off, and reads without.
func TestSealFails(t *testing.T) {
	d, w, frame, _ := begin(t)
	if err := w.Append(frame("one")); err != nil {
		t.Fatal(err)
	}
	size := w.Size()
	d.write, d.cut = io.ErrShortWrite, errors.New("no truncation")
	out := w.Seal()
	if out.Cut != size || out.Size < size {
		t.Fatalf("%+v, want a cut at %d", out, size)
	}
	d.cut = nil
	d.Truncate(out.Cut)
	if got, sealed := payloads(t, d); got != "head one " || sealed {
		t.Errorf("%q, sealed %v", got, sealed)
	}
}

// TestDistrust: three writes that fail in a row make a new segment wanted, until one succeeds.
func TestDistrust(t *testing.T) {
	d, w, frame, _ := begin(t)
	for i := range failuresAllowed {
		if w.Distrusted() {
			t.Fatalf("after %d failures", i)
		}
		d.write = io.ErrShortWrite
		w.Append(frame("lost"))
	}
	if !w.Distrusted() {
		t.Error("three writes have failed")
	}
	if err := w.Append(frame("one")); err != nil || w.Distrusted() {
		t.Errorf("%v, distrusted %v", err, w.Distrusted())
	}
	b := frame("two")
	if n := testing.AllocsPerRun(100, func() { w.Append(b) }); n > 0 {
		t.Errorf("an appended frame makes %v allocations", n)
	}
}

// TestWriterParts: a frame of parts of all sizes is the same file as one that is written whole. Whichever of its writes
// fails, nothing of it is left, and the next one is there.
func TestWriterParts(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 20*smallPart/10)
	var parts [][]byte
	for i, n := range []int{0, 1, smallPart - 1, smallPart - 1, smallPart, 3, smallPart + 1, 3 * smallPart, 5} {
		parts = append(parts, text[i:i+n])
	}
	whole := bytes.Join(parts, nil)
	p, err := NewPacker(None, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for fails := range 10 {
		d, w, frame, faults := begin(t)
		head, stored := p.Pack(nil, parts, FrameInfo{})
		d.write, d.good = errors.New("no write"), fails
		err := w.Append(head, stored...)
		if failed := d.write == nil; failed != (err != nil) || failed != (len(*faults) == 1) {
			t.Fatalf("write %d fails: %v, faults %v", fails, err, *faults)
		}
		if err != nil && int64(len(d.b)) != w.Size() {
			t.Fatalf("write %d fails: %d bytes stay behind %d", fails, int64(len(d.b))-w.Size(), w.Size())
		}
		want := "head " + string(whole) + " two "
		if err != nil {
			want = "head two "
		}
		d.write = nil
		if err := w.Append(frame("two")); err != nil {
			t.Fatal(err)
		}
		w.Seal()
		if got, sealed := payloads(t, d); got != want || !sealed {
			t.Errorf("write %d fails: %d bytes of payload, want %d, sealed %v", fails, len(got), len(want), sealed)
		}
		if err == nil {
			if fails < 4 {
				t.Errorf("%d writes in all", fails)
			}
			return
		}
	}
	t.Error("it never succeeded")
}
