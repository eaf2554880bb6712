package pull

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// TestPullHole: of a file with a very long hole, a pull has the frames before and behind it, and not the hole.
func TestPullHole(t *testing.T) {
	dir := t.TempDir()
	h := segment.Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
	payload := trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Time: 1, Text: "a note"}}}))
	f, err := os.Create(filepath.Join(dir, "00000001.hcr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begin := testFrame(h.Encode(), payload)
	for at, b := range map[int64][]byte{0: begin, 1 << 38: testFrame(nil, payload)} {
		if _, err := f.WriteAt(b, at); err != nil {
			t.Skip("this file system has no such holes: ", err)
		}
	}
	var out bytes.Buffer
	limit := &bounded{w: &out, left: 1 << 20}
	m, err := Pull(t.Context(), dir, limit, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Damaged) != 1 || len(m.Files) != 1 {
		t.Errorf("%+v", m)
	}
	name := filepath.Join(t.TempDir(), "x.heapcam")
	if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	frames := 0
	for fr, err := range rec.Files[0].Frames() {
		if err != nil || !bytes.Equal(fr.Payload, payload) {
			t.Errorf("%d bytes, %v", len(fr.Payload), err)
		}
		frames++
	}
	if frames != 2 {
		t.Errorf("%d frames were pulled, want 2", frames)
	}
}

// bounded fails when too much is written to it.
type bounded struct {
	w    io.Writer
	left int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, io.ErrShortWrite
	}
	return b.w.Write(p)
}
