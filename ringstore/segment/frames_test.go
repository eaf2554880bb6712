package segment

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
)

const refs = FlagReferences | FlagMarked | FlagApart

// mixed are frames with a reference listing of four parts among others.
var mixed = []struct {
	kind  trace.Kind
	flags uint16
}{
	{trace.KindMeta, FlagHead | FlagDefs | FlagMarked | FlagApart}, {trace.KindEpoch, FlagMarked | FlagApart},
	{trace.KindRefs, refs | FlagListed}, {trace.KindRefs, refs}, {trace.KindRefs, refs},
	{trace.KindRefs, refs | FlagListed}, {trace.KindDefs, FlagDefs | FlagMarked | FlagApart},
	{trace.KindEpoch, FlagMarked | FlagApart},
}

// mixedFile gives the bytes of a file with these frames, its index, and where the payload of the second part lies.
// flags are those that are not left out.
func mixedFile(t *testing.T, mode string, flags uint16) (b []byte, x *Index, second int) {
	p, err := NewPacker(mode, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, x = Header{Number: 1, Session: strings.Repeat("0", 32)}.Encode(), &Index{}
	for i, f := range mixed {
		payload := trace.AppendBlock(nil, trace.Block{Kind: f.kind, Version: 1, Seq: uint64(i + 1),
			Payload: bytes.Repeat([]byte{byte(i)}, 40)})
		at := len(b)
		b = p.Frame(b, payload, FrameInfo{Source: uint64(i + 1), FirstGC: 1, LastGC: 1, Flags: f.flags & flags})
		fr, err := decodeFrame("x", int64(at), b[at:])
		if err != nil || fr.Flags != f.flags&flags {
			t.Fatalf("%+v %v", fr, err)
		}
		if x.Add(fr); i == 3 {
			second = at + FrameSize
		}
	}
	return b, x, second
}

// TestReferencesLeftOut: who needs no reference listing gets of each the frames that begin and end it, and a block
// without payload for each frame in between. Who needs them gets all. Where the flags say nothing, as in files of
// earlier recorders, everybody gets all. A frame that is damaged is damaged for both.
func TestReferencesLeftOut(t *testing.T) {
	const everything = "1 2 3 4 5 6 7 8"
	for _, mode := range []string{None, Full} {
		for flags, left := range map[uint16][3]string{
			0xffff: {"1 2 3 - - 6 7 8", "1 3 4 5 6 7", "3 - - 6"},
			0x00ff: {everything, everything, everything},
		} {
			b, x, second := mixedFile(t, mode, flags)
			for _, f := range []*File{file(t, b), file(t, append(bytes.Clone(b), x.encode(int64(len(b)))...))} {
				for name, c := range map[string]struct {
					got  iter.Seq2[trace.Block, error]
					want string
				}{
					"all": {f.Blocks(), everything}, "without references": {f.BlocksWithoutReferences(), left[0]},
					"without tokens": {f.BlocksWithoutTokens(), left[0]}, "from": {f.From(1), left[0]},
					"followed":   {f.BlocksFrom(0, func(int64) {}), left[0]},
					"references": {f.References(), left[1]}, "ends": {f.ReferenceEnds(), left[2]},
				} {
					if got := seqs(c.got); got != c.want {
						t.Errorf("%s, flags %#x, sealed %v: %s: %s, want %s", mode, flags, f.Sealed(), name, got,
							c.want)
					}
				}
			}
			b[second+5] ^= 1
			for _, got := range []string{seqs(file(t, b).Blocks()), seqs(file(t, b).BlocksWithoutReferences())} {
				if !strings.Contains(got, "the checksum of a frame is wrong") {
					t.Errorf("%s, flags %#x: damaged: %s", mode, flags, got)
				}
			}
		}
	}
}

func file(t *testing.T, b []byte) *File {
	f, err := NewFile("00000001.hcr", bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// seqs gives the numbers of blocks; - for one without payload.
func seqs(blocks iter.Seq2[trace.Block, error]) string {
	var out []string
	for b, err := range blocks {
		switch {
		case err != nil:
			out = append(out, err.Error())
		case b.Kind == trace.KindRefs && len(b.Payload) == 0:
			out = append(out, "-")
		default:
			out = append(out, fmt.Sprint(b.Seq))
		}
	}
	return strings.Join(out, " ")
}

// TestWithoutTokensMemory: who needs no tokens does not get new memory for those of each frame, however it is stored.
func TestWithoutTokensMemory(t *testing.T) {
	const objects, frames = 500_000, 20
	types := trace.NewTypeTable(8)
	if err := types.Define(trace.Type{ID: 1, Size: 16, Name: "T"}); err != nil {
		t.Fatal(err)
	}
	walk := trace.NewWalkEncoder(types)
	walk.Begin(1<<10, 1<<24)
	for range objects {
		walk.Dead(1, 0)
	}
	walk.End()
	if walk.Err() != nil {
		t.Fatal(walk.Err())
	}
	epoch := trace.EncodeEpoch(&trace.Epoch{Pause: trace.Pause{GC: 1, Kind: trace.PauseYoung, Depth: trace.DepthFull},
		Allocs: [][]byte{walk.Bytes()}})
	for codec, ease := range map[uint8]int{codecColumns: 0, codecS2: 2} {
		p, err := NewPacker(Full, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		p.Ease(ease)
		b := Header{Number: 1, Session: strings.Repeat("0", 32)}.Encode()
		for i := range uint64(frames) {
			at := len(b)
			b = p.Frame(b, trace.AppendBlock(nil, epoch), FrameInfo{Source: i + 1, Flags: FlagMarked | FlagApart})
			if fr, err := decodeFrame("x", int64(at), b[at:]); err != nil || fr.Codec != codec {
				t.Fatalf("codec %d, want %d (%v)", fr.Codec, codec, err)
			}
		}
		f := file(t, b)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := 0
		for x, err := range f.BlocksWithoutTokens() {
			if err != nil || len(x.Payload) > 1000 {
				t.Fatalf("codec %d: %d bytes, %v", codec, len(x.Payload), err)
			}
			n++
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; n != frames || took > uint64(frames*len(epoch.Payload)/2) {
			t.Errorf("codec %d: %d frames took %d bytes of memory", codec, n, took)
		}
	}
}
