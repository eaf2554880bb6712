package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
	"github.com/heapcam/heapcam/web"
)

// TestFollower: of a ring that grows, begins files, evicts files and is cut off inside a frame, a follower gives the
// blocks that were written, each once and in order.
func TestFollower(t *testing.T) { testFollower(t, follow, true) }

// TestFollowCensus is TestFollower of what a counting replay reads: there epochs may lack tokens.
func TestFollowCensus(t *testing.T) { testFollower(t, followCensus, false) }

func testFollower(
	t *testing.T,
	follow func(path string, progress func(done, total int64)) (*web.Input, error),
	tokens bool,
) {
	dir := t.TempDir()
	s, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 1 << 20, Compression: ringstore.None},
		ringstore.Identity{Session: strings.Repeat("0", 32), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	m := tracetest.New(tracetest.Config{Seed: 1})
	var want []trace.Block
	var f *follower
	n := 0
	follow1 := func() {
		t.Helper()
		if f == nil {
			in, err := follow(dir, func(done, total int64) {})
			if err != nil {
				t.Fatal(err)
			}
			f = in.Source.(*follower)
		}
		for ; ; n++ {
			b, err := f.Next()
			if err == io.EOF {
				break
			}
			if err != nil || n == len(want) || b.Kind != want[n].Kind || b.Seq != want[n].Seq ||
				(tokens || b.Kind != trace.KindEpoch) && !bytes.Equal(b.Payload, want[n].Payload) {
				t.Fatalf("block %d of %d: %v", n, len(want), err)
			}
		}
	}
	for i := range uint64(120) {
		var frame []byte
		for _, b := range m.Step(i%10 == 0).Blocks {
			frame = trace.AppendBlock(frame, b)
			b.Payload = bytes.Clone(b.Payload)
			want = append(want, b)
		}
		write := s.Append
		if i%10 == 0 {
			write = s.Rotate
		}
		if err := write(frame, ringstore.FrameInfo{Source: i + 1, FirstGC: i + 1, LastGC: i + 1, T0: i + 1,
			T1: i + 1}); err != nil {
			t.Fatal(err)
		}
		if i%7 == 3 {
			follow1()
			if n != len(want) {
				t.Fatalf("%d of %d blocks", n, len(want))
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	follow1()
	if n != len(want) || f.oldest == 0 {
		t.Fatalf("%d of %d blocks; the oldest collection is %d", n, len(want), f.oldest)
	}

	// a frame that is only partly written is read when it is complete
	files := ringFiles(dir)
	last := files[len(files)-1]
	whole, err := os.ReadFile(last)
	if err != nil {
		t.Fatal(err)
	}
	alone := t.TempDir()
	at := alone + "/" + last[strings.LastIndexByte(last, '/')+1:]
	f, n = nil, 0
	rec, err := ringstore.OpenFile(last)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	want = nil
	for b, err := range rec.Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		b.Payload = bytes.Clone(b.Payload)
		want = append(want, b)
	}
	for cut := 200; ; cut += 777 {
		if err := os.WriteFile(at, whole[:min(cut, len(whole))], 0o600); err != nil {
			t.Fatal(err)
		}
		dir = alone
		follow1()
		if cut >= len(whole) {
			break
		}
	}
	if n != len(want) {
		t.Errorf("%d of %d blocks", n, len(want))
	}
}
