package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestSourceReadsAhead: the blocks that come side by side are those that come one by one, over files, and a source
// that is closed early leaves nothing running.
func TestSourceReadsAhead(t *testing.T) {
	dir := t.TempDir()
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 4 << 20},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	m := tracetest.New(tracetest.Config{Seed: 1})
	total := 0
	for i := range uint64(30) {
		var frame []byte
		for _, b := range m.Step(i%10 == 0).Blocks {
			frame = trace.AppendBlock(frame, b)
			total++
		}
		write := s.Append
		if i%10 == 0 {
			write = s.Rotate
		}
		if err := write(frame, ringstore.FrameInfo{Source: i + 1, T0: i + 1, T1: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	rec, err := ringstore.OpenRecording(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	if len(rec.Files) < 2 {
		t.Fatalf("%d files", len(rec.Files))
	}
	for stop := range total + 2 {
		s, n := newSource(rec.Files...), 0
	files:
		for _, f := range rec.Files {
			for want, werr := range f.Blocks() {
				if n == stop {
					break files
				}
				got, err := s.Next()
				if err != nil || werr != nil || got.Seq != want.Seq || got.Kind != want.Kind ||
					!bytes.Equal(got.Payload, want.Payload) {
					t.Fatalf("block %d: %v, %v", n, err, werr)
				}
				n++
			}
		}
		if n < stop {
			if _, err := s.Next(); err != io.EOF || n < total {
				t.Fatalf("behind block %d of %d: %v", n, total, err)
			}
		}
		s.Close()
		s.Close()
		if _, err := s.Next(); err != io.EOF {
			t.Fatalf("after the end: %v", err)
		}
	}
}
