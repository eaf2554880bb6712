package pull

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

// anew2 writes a file that may be there: file systems flush one that is truncated and written again, which takes a
// hundred times as long.
func anew(p string, b []byte) error {
	os.Remove(p)
	return os.WriteFile(p, b, 0o600)
}

// FuzzPart continues whatever an interrupted pull is said to have left.
func FuzzPart(f *testing.F) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	h := segment.Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	file := testFrame(h.Encode(), make([]byte, 16))
	for _, name := range []string{"00000001.hcr", "00000002.hcr"} {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(file))})
		t.Write(file)
	}
	t.Flush()
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:b.Len()-100])
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00000001.hcr"), file, 0o600); err != nil {
		f.Fatal(err)
	}
	names, err := folder.RingFiles(vfs.OS, dir)
	if err != nil {
		f.Fatal(err)
	}
	p := filepath.Join(f.TempDir(), "x.part")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		part, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		defer part.Close()
		got, err := ReadPart(part)
		if err != nil {
			return
		}
		if at := got.Trim(dir, vfs.OS); at < 0 || at > int64(len(b)) {
			t.Fatalf("cut at %d of %d", at, len(b))
		}
		(&puller{m: &recording.Manifest{}, opt: Options{Part: got}}).resume(names)
	})
}

// testFrame2 appends a frame to dst.
func testFrame(dst, payload []byte) []byte {
	p, err := segment.NewPacker(segment.None, 1, 1)
	if err != nil {
		panic(err)
	}
	return p.Frame(dst, payload, segment.FrameInfo{})
}
