package segment

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// TestModes stores what a session would, the mode and the queue changing all the time: everything reads back, frame
// by frame.
func TestModes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := tracetest.New(tracetest.All(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(1, 3).Draw(t, "collector"),
			trace.DepthFull))
		var want [][]byte
		payload := func(bs []trace.Block) []byte {
			var p []byte
			for _, b := range bs {
				p = trace.AppendBlock(p, b)
			}
			want = append(want, p)
			return p
		}
		var file []byte
		h := Header{Number: 1, Session: "00112233445566778899aabbccddeeff"}
		file = append(file, h.Encode()...)
		var p *Packer
		codecs := map[uint8]bool{}
		for i := range 12 {
			if p == nil || rapid.IntRange(0, 7).Draw(t, "reopened") == 0 {
				p, _ = NewPacker(rapid.SampledFrom([]string{None, Partial, Full, Adaptive}).Draw(t, "mode"), 0.2, 0.5)
			}
			p.queue = rapid.Float64Range(0, 1).Draw(t, "queue")
			bs := m.Head()
			if i > 0 {
				bs = m.Step(i%7 == 3).Blocks
			}
			info := FrameInfo{Source: uint64(i + 1), Flags: FlagMarked}
			if slices.ContainsFunc(bs, func(b trace.Block) bool { return b.Kind == trace.KindSync }) {
				info.Flags |= FlagListing
			}
			// In parts of whole blocks, as a session has them, some of them empty.
			all := payload(bs)
			parts, from := [][]byte{}, 0
			for at := 0; at < len(all); {
				_, n, err := trace.ReadBlock(all[at:])
				if err != nil {
					t.Fatal(err)
				}
				if at += n; rapid.Bool().Draw(t, "cut") {
					parts, from = append(parts, all[from:at]), at
				}
			}
			parts = append(parts, all[from:])
			file, parts = p.Pack(file, parts, info)
			for _, part := range parts {
				file = append(file, part...)
			}
		}
		f, err := NewFile("x", bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for fr, err := range f.Frames() {
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(fr.Payload, want[i]) {
				t.Fatalf("frame %d, codec %d, is not what was stored", i, fr.Codec)
			}
			codecs[fr.Codec] = true
			i++
		}
		if i != len(want) {
			t.Fatalf("%d frames of %d", i, len(want))
		}
		var few []trace.Block // all are looked at when all have been read: nothing is read into twice
		for b, err := range f.BlocksWithoutTokens() {
			if err != nil {
				t.Fatal(err)
			}
			few = append(few, b)
		}
		i = 0
		for b := range f.Blocks() {
			if i == len(few) || !b.Equal(few[i]) &&
				(b.Kind != trace.KindEpoch || few[i].Kind != b.Kind || few[i].Seq != b.Seq ||
					len(few[i].Payload) >= len(b.Payload)) {
				t.Fatalf("block %d of %d is different without tokens", i, len(few))
			}
			i++
		}
		if i != len(few) {
			t.Fatalf("%d blocks without tokens, of %d", len(few), i)
		}
		sameFrom(t, f)
	})
}

// sameFrom demands that BlocksFrom gives, frame after frame, what Blocks gives.
func sameFrom(t interface{ Fatalf(string, ...any) }, f *File) {
	var all []trace.Block
	at := int64(0)
	for {
		begin, n := at, 0
		for b, err := range f.BlocksFrom(begin, func(behind int64) { at = behind }) {
			if at != begin { // the next frame
				break
			}
			if err != nil {
				t.Fatalf("%v", err)
			}
			all = append(all, b)
			n++
		}
		if n == 0 {
			break
		}
	}
	i := 0
	for b := range f.Blocks() {
		if i == len(all) || !b.Equal(all[i]) {
			t.Fatalf("block %d of %d is different frame after frame", i, len(all))
		}
		i++
	}
	if i != len(all) || at != f.Size {
		t.Fatalf("%d blocks of %d; the end is at %d, want %d", len(all), i, at, f.Size)
	}
}

// TestEffort: partial goes by the queue, adaptive by queue, budget and the bytes before, full by nothing.
func TestEffort(t *testing.T) {
	for _, c := range []struct {
		mode         string
		queue, spent float64 // spent: share of the budget
		want         effort
	}{
		{None, 1, 0, effortNone}, {Partial, 0.1, 0, effortNone}, {Partial, 0.2, 9, effortFast},
		{Full, 1, 9, effortBest},
		{Adaptive, 0, 0, effortBest}, {Adaptive, 0.3, 0, effortFast}, {Adaptive, 0.6, 0, effortS2},
		{Adaptive, 0.9, 0, effortNone},
		{Adaptive, 0, 1.1, effortFast}, {Adaptive, 0, 1.6, effortS2}, {Adaptive, 0, 2.1, effortS2},
		{Adaptive, 0.6, 1.1, effortS2},
	} {
		p, err := NewPacker(c.mode, 0.2, 0.5)
		if err != nil {
			t.Fatal(err)
		}
		p.queue, p.spent = c.queue, c.spent*0.5*float64(budgetSpan)
		begin := c.want
		if c.mode == Adaptive {
			begin = min(begin, effortFast)
		}
		if got := p.effort(); got != begin {
			t.Errorf("%+v, the first frame: %d", c, got)
		}
		p.packed = firstFast
		if got := p.effort(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
	// The budget is an average: what packs one second in ten spends 0.1.
	p, _ := NewPacker(Adaptive, 0.2, 0.5)
	now := time.Unix(1, 0)
	for range 100 {
		p.charge(now, now.Add(time.Second))
		now = now.Add(10 * time.Second)
	}
	if share := p.spent / float64(budgetSpan); share < 0.05 || share > 0.2 {
		t.Errorf("%.2f CPUs, want about 0.1", share)
	}
	if _, err := NewPacker("best", 0.2, 1); err == nil {
		t.Error("an unknown mode is taken")
	}
}

// TestBomb: an S2 frame that claims to become large is refused before memory is taken for it.
func TestBomb(t *testing.T) {
	stored := []byte{0x80, 0x80, 0x80, 0x80, 4, 0} // 1 GiB
	b := append(encodeFrame(nil, Frame{Codec: codecS2, Raw: MaxFrame}, [][]byte{stored}), stored...)
	f, err := decodeFrame("x", 0, b)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := f.payload("x", stored, nil, new([]byte)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

func BenchmarkPack(b *testing.B) {
	m := tracetest.New(tracetest.All(1, 3, trace.DepthFull))
	var p []byte
	for _, bl := range m.Head() {
		p = trace.AppendBlock(p, bl)
	}
	for len(p) < 1<<20 {
		for _, bl := range m.Step(false).Blocks {
			p = trace.AppendBlock(p, bl)
		}
	}
	for e := effortS2; e <= effortBest; e++ {
		b.Run(fmt.Sprint(e), func(b *testing.B) {
			k, _ := NewPacker(Full, 0.2, 1)
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				k.pack(e, [][]byte{p}, len(p))
			}
		})
	}
}
