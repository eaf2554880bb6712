package ringstore

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzContainer opens whatever it is given as a recording and reads all of it.
func FuzzContainer(f *testing.F) {
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	h := fileHeader{index: 1, session: "00112233445566778899aabbccddeeff"}
	file := encodeFrame(h.encode(), Frame{Raw: 16}, make([]byte, 16))
	m := []byte(`{"schema":"heapcam.manifest/1"}`)
	for name, c := range map[string][]byte{"00000001.hcr": file, manifestName: m} {
		t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(c))})
		t.Write(c)
	}
	t.Close()
	f.Add(b.Bytes())
	f.Add(file)
	f.Add(m)
	p := filepath.Join(f.TempDir(), "x")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		decodeManifest(b)
		r, err := OpenRecording(p)
		if err != nil {
			return
		}
		defer r.Close()
		for _, f := range r.Files {
			for _, err := range f.Blocks() {
				_ = err
			}
		}
	})
}
