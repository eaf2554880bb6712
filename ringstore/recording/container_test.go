package recording

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/segment"
)

// anew writes a file that may be there: file systems flush one that is truncated and written again, which takes a
// hundred times as long.
func anew(p string, b []byte) error {
	os.Remove(p)
	return os.WriteFile(p, b, 0o600)
}

// FuzzContainer opens whatever it is given as a recording and reads all of it.
func FuzzContainer(f *testing.F) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	h := segment.Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	file := testFrame(h.Encode(), make([]byte, 16))
	m := []byte(`{"schema":"heapcam.manifest/1"}`)
	for name, c := range map[string][]byte{"00000001.hcr": file, ManifestName: m} {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(c))})
		t.Write(c)
	}
	t.Close()
	f.Add(b.Bytes())
	f.Add(file)
	f.Add(m)
	p := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		decodeManifest("x", b)
		r, err := Open(p)
		if err != nil {
			return
		}
		defer r.Close()
		for _, f := range r.Files {
			for _, err := range f.Blocks() {
				_ = err
			}
		}
		r.Check()
	})
}

// testFrame appends a frame to dst.
func testFrame(dst, payload []byte) []byte {
	p, err := segment.NewPacker(segment.None, 1, 1)
	if err != nil {
		panic(err)
	}
	return p.Frame(dst, payload, segment.FrameInfo{})
}
