package columns_test

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/columns"
	"github.com/heapcam/heapcam/trace/tracetest"
)

// stream gives payloads as a session makes them: the head, then some epochs.
func stream(seed, collector uint64, epochs int) (out [][]byte) {
	m := tracetest.New(tracetest.All(seed, collector, trace.DepthFull))
	var p []byte
	for _, b := range m.Head() {
		p = trace.AppendBlock(p, b)
	}
	out = append(out, p)
	for i := range epochs {
		e := m.Step(i%7 == 3)
		p = nil
		for _, b := range e.Blocks {
			p = trace.AppendBlock(p, b)
		}
		out = append(out, p)
	}
	return out
}

// back demands that what was encoded decodes to itself.
func back(t interface{ Fatalf(string, ...any) }, e *columns.Encoder, p []byte) []byte {
	enc := e.Encode(nil, p)
	got, err := columns.Decode([]byte("before"), enc, len(p))
	if err != nil || !bytes.Equal(got, append([]byte("before"), p...)) {
		t.Fatalf("%d bytes come back as %d: %v", len(p), len(got)-6, err)
	}
	return enc
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e columns.Encoder
		for _, p := range stream(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(1, 3).Draw(t, "collector"), 20) {
			if rapid.IntRange(0, 3).Draw(t, "damage") == 0 { // any bytes come back
				p = bytes.Clone(p)
				for range rapid.IntRange(1, 5).Draw(t, "flips") {
					p[rapid.IntRange(0, len(p)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
				}
				p = p[:len(p)-rapid.IntRange(0, min(9, len(p))).Draw(t, "cut")]
			}
			back(t, &e, p)
		}
	})
}

// TestManySymbols has more types than there are codes.
func TestManySymbols(t *testing.T) {
	types := trace.NewTypeTable(8)
	var defs trace.Defs
	for i := uint64(1); i <= 20000; i++ {
		defs.Types = append(defs.Types, trace.Type{ID: i, Size: 16, Name: "C"})
	}
	if err := types.DefineAll(defs.Types); err != nil {
		t.Fatal(err)
	}
	p := trace.AppendBlock(nil, trace.EncodeDefs(defs))
	for _, n := range []uint32{100, 20000} {
		w := trace.NewWalkEncoder(types)
		w.Begin(1000, uint64(2*n))
		for i := range n {
			w.Dead(i+1, 0)
		}
		w.End()
		p = trace.AppendBlock(p,
			trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 1, Kind: 1, Depth: 3}, Allocs: [][]byte{w.Bytes()}}))
	}
	back(t, new(columns.Encoder), p)
}

// TestLateTypes has classes whose ids lie behind all tables, as they do in a program that loads and drops classes for
// hours: their tokens become columns too, and nothing of them stays.
func TestLateTypes(t *testing.T) {
	const first, each, frames = 30_000, 40, 500 // the first token that is in no table is of type 32,768
	var e columns.Encoder
	types := trace.NewTypeTable(8)
	plain := 0
	for n := range uint64(frames) {
		defs := trace.Defs{}
		for i := range uint64(each) {
			flags := uint64(0)
			if i%2 == 1 {
				flags = trace.TypeArray
			}
			defs.Types = append(defs.Types, trace.Type{ID: first + n*each + i, Size: 16, Flags: flags, Name: "C"})
		}
		if err := types.DefineAll(defs.Types); err != nil {
			t.Fatal(err)
		}
		w := trace.NewWalkEncoder(types)
		w.Begin(1000, 1<<20)
		for i := range uint32(50 * each) {
			w.Dead(first+uint32(n)*each+i%each, 7)
		}
		w.End()
		p := trace.AppendBlock(trace.AppendBlock(nil, trace.EncodeDefs(defs)), trace.EncodeEpoch(&trace.Epoch{
			Pause: trace.Pause{GC: n + 1, Kind: 1, Depth: 3}, Allocs: [][]byte{w.Bytes()}}))
		if enc := back(t, &e, p); !bytes.Contains(enc, w.Bytes()[100:200]) {
			plain++
		}
	}
	if plain != frames {
		t.Errorf("the tokens of %d frames are no columns", frames-plain)
	}
}

func FuzzDecode(f *testing.F) {
	var e columns.Encoder
	for _, p := range stream(2, 3, 8) {
		f.Add(e.Encode(nil, p))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := columns.Decode(nil, b, 1<<20)
		if err != nil && !errors.Is(err, columns.ErrCorrupt) {
			t.Fatal(err)
		}
		if len(got) > 1<<20 {
			t.Fatalf("%d bytes, more than the limit", len(got))
		}
		whole := err == nil
		got, err = columns.DecodeWithoutTokens(nil, bytes.NewReader(b), 1<<20)
		if err != nil && !errors.Is(err, columns.ErrCorrupt) {
			t.Fatal(err)
		}
		if whole && len(got) > 1<<20 {
			t.Fatalf("%d bytes, more than the limit", len(got))
		}
	})
}

func FuzzRoundTrip(f *testing.F) {
	for _, p := range stream(3, 1, 8) {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) { back(t, new(columns.Encoder), p) })
}

func BenchmarkEncode(b *testing.B) {
	all := stream(1, 2, 200)
	var e columns.Encoder
	n := 0
	var dst []byte
	for b.Loop() {
		n = 0
		for _, p := range all {
			dst = e.Encode(dst[:0], p)
			n += len(p)
		}
	}
	b.SetBytes(int64(n))
}

func BenchmarkDecode(b *testing.B) {
	var e columns.Encoder
	var all [][]byte
	n := 0
	for _, p := range stream(1, 2, 200) {
		all = append(all, e.Encode(nil, p))
		n += len(p)
	}
	var dst []byte
	for b.Loop() {
		for _, p := range all {
			var err error
			if dst, err = columns.Decode(dst[:0], p, 1<<30); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.SetBytes(int64(n))
}

// sameWithoutTokens demands that DecodeWithoutTokens and WithoutTokens give the blocks of p with empty blobs of tokens,
// and that the former reads no column.
func sameWithoutTokens(t interface{ Fatalf(string, ...any) }, enc, p []byte) {
	got, err := columns.DecodeWithoutTokens([]byte("before"), bytes.NewReader(enc), len(p))
	if err != nil {
		t.Fatalf("DecodeWithoutTokens: %v", err)
	}
	got = got[len("before"):]
	if plain := columns.WithoutTokens(nil, p); !bytes.Equal(plain, got) {
		t.Fatalf("%d bytes of blocks that were not encoded, %d of those that were", len(plain), len(got))
	}
	for want, err := range trace.Blocks(p) {
		if err != nil {
			t.Fatalf("%v", err)
		}
		b, n, err := trace.ReadBlock(got)
		if err != nil {
			t.Fatalf("block without tokens: %v", err)
		}
		got = got[n:]
		switch want.Kind {
		case trace.KindEpoch:
			e, err := trace.DecodeEpoch(want)
			if err != nil {
				t.Fatalf("%v", err)
			}
			for _, blobs := range [][][]byte{e.Allocs, e.Moves, e.Births} {
				for i := range blobs {
					blobs[i] = nil
				}
			}
			seq, flags := want.Seq, want.Flags
			want = trace.EncodeEpoch(e)
			want.Seq, want.Flags = seq, flags
		case trace.KindSync:
			s, err := trace.DecodeSync(want)
			if err != nil {
				t.Fatalf("%v", err)
			}
			for i := range s.Lists {
				s.Lists[i] = nil
			}
			seq, flags := want.Seq, want.Flags
			want = trace.EncodeSync(s)
			want.Seq, want.Flags = seq, flags
		}
		if !b.Equal(want) {
			t.Fatalf("a block of kind %d and %d bytes becomes kind %d and %d bytes", want.Kind,
				len(want.Payload), b.Kind,
				len(b.Payload))
		}
	}
	if len(got) != 0 {
		t.Fatalf("%d bytes more", len(got))
	}
}

func TestDecodeWithoutTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e columns.Encoder
		for _, p := range stream(rapid.Uint64().Draw(t, "seed"), rapid.Uint64Range(1, 3).Draw(t, "collector"), 20) {
			enc := e.Encode(nil, p)
			sameWithoutTokens(t, enc, p)
			sameWithoutTokens(t, append(enc, make([]byte, 100)...), p) // what follows is not looked at
		}
	})
}
