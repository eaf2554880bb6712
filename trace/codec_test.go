package trace

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Generators stay within limits.go; strings are ASCII where the decoder would repair them.
var (
	genStr  = rapid.StringMatching(`[ -~äöü日本]{0,12}`)
	genID   = rapid.Uint64Range(1, MaxID)
	genZID  = rapid.Uint64Range(0, MaxID)
	genType = rapid.Uint64Range(1, MaxTypeID)
	genTime = rapid.Uint64Range(0, MaxTime)
	genAddr = rapid.Uint64Range(0, MaxAddr)
	genNum  = rapid.Uint64Range(0, MaxCount)
	genSize = rapid.Uint64Range(0, MaxBytes)
	genFlag = rapid.Uint64Range(0, maxFlags)
	genSamp = rapid.Uint64Range(1, MaxSampleID)
	genBlob = rapid.SliceOfN(rapid.Byte(), 0, 20)
)

func list[T any](t *rapid.T, name string, gen func() T) []T {
	var out []T
	for range rapid.IntRange(0, 4).Draw(t, name) {
		out = append(out, gen())
	}
	return out
}

func genMeta(t *rapid.T) Meta {
	m := Meta{HasJVM: rapid.Bool().Draw(t, "jvm")}
	if m.HasJVM {
		m.JVM = JVM{
			ABI: genNum.Draw(t, "abi"), Major: genNum.Draw(t, "major"),
			Collector: rapid.Uint64Range(1, 6).Draw(t, "col"),
			PID:       genNum.Draw(t, "pid"), StartMS: genTime.Draw(t, "start"), T0WallMS: genTime.Draw(t, "t0"),
			HeapBase: rapid.Uint64().Draw(t, "base"), HeapWords: genAddr.Draw(t, "words"),
			Align:       rapid.SampledFrom([]uint64{8, 16, 32, 64, 128, 256}).Draw(t, "align"),
			RegionWords: genAddr.Draw(t, "region"),
			Flags:       genFlag.Draw(t, "flags"), Depth: rapid.Uint64Range(1, 3).Draw(t, "depth"),
			Interval: genSize.Draw(t, "interval"),
			MaxHeap:  genSize.Draw(t, "max"), Session: genStr.Draw(t, "session"), VM: genStr.Draw(t, "vm"),
			Probe: genStr.Draw(t, "probe"),
		}
	}
	m.Notes = list(t, "notes", func() Note { return Note{genTime.Draw(t, "time"), genStr.Draw(t, "text")} })
	m.Sampling = list(t, "sampling", func() Sampling {
		return Sampling{genTime.Draw(t, "time"), genTime.Draw(t, "ns")}
	})
	m.SitesCut = list(t, "sites", func() SitesCut {
		return SitesCut{genTime.Draw(t, "time"), genNum.Draw(t, "samples"), genNum.Draw(t, "folded")}
	})
	m.Unlisted = list(t, "unlisted", func() Unlisted {
		return Unlisted{genTime.Draw(t, "time"), genNum.Draw(t, "gc"), genNum.Draw(t, "objects"),
			genSize.Draw(t, "bytes"), genStr.Draw(t, "largest")}
	})
	m.Storms = list(t, "storms", func() Storm {
		return Storm{genTime.Draw(t, "time"), genTime.Draw(t, "span"), genNum.Draw(t, "collections"),
			genTime.Draw(t, "ns")}
	})
	m.Exhausted = list(t, "exhausted", func() Exhausted {
		return Exhausted{genTime.Draw(t, "time"), genNum.Draw(t, "failed")}
	})
	m.Process = list(t, "process", func() Process {
		return Process{genTime.Draw(t, "time"), genSize.Draw(t, "rss"), genSize.Draw(t, "anon"),
			genSize.Draw(t, "swap"), genNum.Draw(t, "threads"), genSize.Draw(t, "heap"),
			genSize.Draw(t, "metaspace"), genSize.Draw(t, "code"), genNum.Draw(t, "classes"),
			genSize.Draw(t, "limit"), genSize.Draw(t, "used")}
	})
	m.Killed = list(t, "killed", func() Killed {
		return Killed{genTime.Draw(t, "time"), rapid.Uint64Range(1, 255).Draw(t, "scope"), genSize.Draw(t, "limit")}
	})
	return m
}

func genDefs(t *rapid.T) Defs {
	return Defs{
		Types: list(t, "types", func() Type {
			return Type{
				ID: genType.Draw(t, "id"), Flags: genFlag.Draw(t, "flags"),
				Size: rapid.Uint64Range(1, MaxInstance).Draw(t, "size"),
				Log2: rapid.Uint64Range(0, MaxLog2).Draw(t, "log2"), Loader: genZID.Draw(t, "loader"),
				Word: rapid.Uint64().Draw(t, "word"),
				Name: genStr.Draw(t, "name"),
			}
		}),
		Loaders: list(t, "loaders", func() Loader { return Loader{genID.Draw(t, "id"), genStr.Draw(t, "name")} }),
		Methods: list(t, "methods", func() Method {
			bci := 0
			return Method{
				ID: genID.Draw(t, "id"), Class: genStr.Draw(t, "class"), Name: genStr.Draw(t, "name"),
				Sig:  genStr.Draw(t, "sig"),
				File: genStr.Draw(t, "file"), Flags: genFlag.Draw(t, "flags"),
				Lines: list(t, "lines", func() LineEntry {
					bci = rapid.IntRange(bci, MaxBCI).Draw(t, "bci")
					return LineEntry{bci, rapid.IntRange(0, MaxLine).Draw(t, "line")}
				}),
			}
		}),
		Frames: list(t, "frames", func() Frame {
			f := Frame{genID.Draw(t, "id"), genZID.Draw(t, "parent"), genZID.Draw(t, "method"),
				rapid.Int64Range(-1, MaxBCI).Draw(t, "bci")}
			if f.ID == f.Parent {
				f.Parent = 0
			}
			return f
		}),
		Threads: list(t, "threads", func() Thread {
			return Thread{genID.Draw(t, "id"), genFlag.Draw(t, "flags"), genStr.Draw(t, "name")}
		}),
		GoneTypes:   list(t, "gonetypes", func() uint64 { return genType.Draw(t, "id") }),
		GoneLoaders: list(t, "goneloaders", func() uint64 { return genID.Draw(t, "id") }),
	}
}

func genSamples(t *rapid.T) []Sample {
	chances := map[uint64]uint64{} // a sample that stands twice is watched twice
	return list(t, "samples", func() Sample {
		s := Sample{
			ID: genSamp.Draw(t, "id"), Time: genTime.Draw(t, "time"), Thread: genZID.Draw(t, "thread"),
			Type: genType.Draw(t, "type"),
			Size: genSize.Draw(t, "size"), Interval: genSize.Draw(t, "interval"), Frame: genZID.Draw(t, "frame"),
		}
		if _, ok := chances[s.ID]; !ok {
			chances[s.ID] = rapid.SampledFrom([]uint64{0, 1, 64, MaxCount}).Draw(t, "chances")
		}
		s.Chances = chances[s.ID]
		return s
	})
}

func genSpaces(t *rapid.T) []Space {
	return list(t, "spaces", func() Space {
		bottom := genAddr.Draw(t, "bottom")
		top := rapid.Uint64Range(bottom, MaxAddr).Draw(t, "top")
		end := rapid.Uint64Range(top, MaxAddr).Draw(t, "end")
		return Space{rapid.Uint64Range(0, 7).Draw(t, "kind"), bottom, top, end, genSize.Draw(t, "before"),
			genSize.Draw(t, "after")}
	})
}

func genRegions(t *rapid.T) []RegionRun {
	return list(t, "regions", func() RegionRun {
		return RegionRun{rapid.Uint64Range(0, 6).Draw(t, "kind"), genAddr.Draw(t, "run")}
	})
}

func genBlobs(t *rapid.T, name string) [][]byte {
	return list(t, name, func() []byte { return genBlob.Draw(t, name) })
}

func genEpoch(t *rapid.T) *Epoch {
	e := genPause(t)
	if rapid.Bool().Draw(t, "cycle") {
		e.HasCycle = true
		e.Cycle = Cycle{genTime.Draw(t, "begin"), genTime.Draw(t, "end"), genFlag.Draw(t, "cycleflags"),
			genNum.Draw(t, "pauses"), genTime.Draw(t, "longest")}
	}
	e.Stops = list(t, "stops", func() Stop { return Stop{genTime.Draw(t, "stop"), genTime.Draw(t, "stopdur")} })
	e.Sited = genSited(t)
	e.UseScope = rapid.StringMatching(`[a-z.+]{0,9}`).Draw(t, "usescope")
	e.Uses = list(t, "uses", func() Use {
		return Use{genSamp.Draw(t, "id"), genTime.Draw(t, "since"), genTime.Draw(t, "used"),
			genFlag.Draw(t, "useflags")}
	})
	e.Survived = list(t, "survived", func() uint64 { return genSamp.Draw(t, "id") })
	e.Unwatched = list(t, "unwatched", func() uint64 { return genSamp.Draw(t, "id") })
	return e
}

func genPause(t *rapid.T) *Epoch {
	return &Epoch{
		Pause: Pause{
			GC: genNum.Draw(t, "gc"), Kind: rapid.Uint64Range(1, 10).Draw(t, "kind"), Flags: genFlag.Draw(t, "flags"),
			Depth: rapid.Uint64Range(1, 3).Draw(t, "depth"), Start: genTime.Draw(t, "start"),
			Dur:   genTime.Draw(t, "dur"),
			Probe: genTime.Draw(t, "probe"), JVMGC: genNum.Draw(t, "jvmgc"), PhaseStart: genTime.Draw(t, "phase"),
			Cause: genStr.Draw(t, "cause"), Interval: genSize.Draw(t, "interval"),
		},
		Spaces: genSpaces(t), Regions: genRegions(t), Allocs: genBlobs(t, "allocs"), Moves: genBlobs(t, "moves"),
		Births: genBlobs(t, "births"),
		Freed:  genRanges(t, "freed"),
		Resolved: list(t, "resolved", func() SampleAddr {
			return SampleAddr{genSamp.Draw(t, "id"), genAddr.Draw(t, "addr")}
		}),
		SampleDead: list(t, "dead", func() uint64 { return genSamp.Draw(t, "id") }),
		Census: list(t, "census", func() CensusRow {
			r := CensusRow{Type: genType.Draw(t, "type"), Bucket: rapid.Uint64Range(0, BucketOld).Draw(t, "bucket")}
			for i := range r.Cells {
				if rapid.Bool().Draw(t, "cell") {
					r.Cells[i] = CensusCell{genNum.Draw(t, "objects"), genSize.Draw(t, "bytes")}
				}
			}
			return r
		}),
		Lost: genLost(t), Uncounted: genUncounted(t),
	}
}

func genRanges(t *rapid.T, name string) []Range {
	return list(t, name, func() Range {
		r := Range{Start: genAddr.Draw(t, "start")}
		r.Words = rapid.Uint64Range(0, MaxAddr-r.Start).Draw(t, "words")
		return r
	})
}

func genLive(t *rapid.T) []LiveSample {
	return list(t, "samples", func() LiveSample {
		return LiveSample{genSamp.Draw(t, "id"), genAddr.Draw(t, "addr"), genZID.Draw(t, "frame"),
			genZID.Draw(t, "thread"),
			genNum.Draw(t, "birth"),
			genSize.Draw(t, "interval"), genSize.Draw(t, "size")}
	})
}

func genSited(t *rapid.T) []SitedAddr {
	return list(t, "sited", func() SitedAddr { return SitedAddr{genAddr.Draw(t, "addr"), genID.Draw(t, "frame")} })
}

func genSlice(t *rapid.T) *Slice {
	return &Slice{
		GC: genNum.Draw(t, "gc"), Ramp: rapid.Uint64Range(0, MaxCount).Draw(t, "ramp"),
		N: rapid.Uint64Range(1, MaxCount).Draw(t, "n"), Reason: rapid.Uint64Range(1, 11).Draw(t, "reason"),
		Flags: genFlag.Draw(t, "flags"), Left: genAddr.Draw(t, "left"), Uncounted: genAddr.Draw(t, "uncounted"),
		Time: genTime.Draw(t, "time"), Probe: genTime.Draw(t, "probe"), Pending: genRanges(t, "pending"),
		Listed: genRanges(t, "listed"), Spaces: genSpaces(t), Regions: genRegions(t), Lists: genBlobs(t, "lists"),
		Again: genBlobs(t, "again"), Samples: genLive(t),
		SampleTypes: list(t, "types", func() uint64 { return genType.Draw(t, "type") }),
		Objects:     genNum.Draw(t, "objects"), Bytes: genSize.Draw(t, "bytes"), Sited: genSited(t),
	}
}

func genLost(t *rapid.T) (l Lost) {
	if rapid.Bool().Draw(t, "lost") {
		l.Since = rapid.Uint64Range(1, MaxCount).Draw(t, "since")
	}
	l.Cleared, l.Unknown = genRanges(t, "cleared"), genRanges(t, "unknown")
	return l
}

func genUncounted(t *rapid.T) []UncountedRow {
	return list(t, "uncounted", func() UncountedRow {
		return UncountedRow{genType.Draw(t, "type"), rapid.Uint64Range(0, BucketOld).Draw(t, "bucket"),
			CensusCell{genNum.Draw(t, "died"), genSize.Draw(t, "bytes")},
			CensusCell{genNum.Draw(t, "gained"), genSize.Draw(t, "bytes")}}
	})
}

func genSync(t *rapid.T) *Sync {
	return &Sync{
		GC: genNum.Draw(t, "gc"), Reason: rapid.Uint64Range(1, 11).Draw(t, "reason"), Flags: genFlag.Draw(t, "flags"),
		Time: genTime.Draw(t, "time"), Probe: genTime.Draw(t, "probe"), Spaces: genSpaces(t), Regions: genRegions(t),
		Lists: genBlobs(t, "lists"), Samples: genLive(t),
		Objects: genNum.Draw(t, "objects"), Bytes: genSize.Draw(t, "bytes"),
		Watching: list(t, "watching", func() Watching {
			return Watching{genSamp.Draw(t, "id"), genType.Draw(t, "type"), rapid.Uint64Range(1, MaxCount).Draw(t,
				"chances"), rapid.Bool().Draw(t, "survived")}
		}),
		Sited: genSited(t),
	}
}

func genAnyBlock(t *rapid.T) Block {
	var b Block
	switch rapid.IntRange(1, 8).Draw(t, "block") {
	case 8:
		b = EncodeSlice(genSlice(t))
	case 1:
		b = EncodeMeta(genMeta(t))
	case 2:
		b = EncodeDefs(genDefs(t))
	case 3:
		b = EncodeSamples(genSamples(t))
	case 4:
		b = EncodeEpoch(genEpoch(t))
	case 5:
		b = EncodeSync(genSync(t))
	case 6:
		b = EncodeGap(Gap{rapid.Uint64Range(1, 5).Draw(t, "reason"), genNum.Draw(t, "epochs"),
			genNum.Draw(t, "samples"),
			genTime.Draw(t, "time")})
	default:
		b = EncodeEnd(End{genTime.Draw(t, "time"), rapid.Uint64Range(1, 3).Draw(t, "reason"), genStr.Draw(t, "text")})
	}
	b.Seq = rapid.Uint64().Draw(t, "seq")
	b.Flags = rapid.Uint16().Draw(t, "bflags")
	return b
}

// TestRoundTrip: what an encoder wrote its decoder gives back equal.
func TestRoundTrip(t *testing.T) {
	same := func(t *rapid.T, want, got any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("\nwrote %+v\nread  %+v", want, got)
		}
	}
	for name, f := range map[string]func(t *rapid.T){
		"meta": func(t *rapid.T) { w := genMeta(t); g, err := DecodeMeta(EncodeMeta(w)); same(t, w, g, err) },
		"defs": func(t *rapid.T) { w := genDefs(t); g, err := DecodeDefs(EncodeDefs(w)); same(t, w, g, err) },
		"samples": func(t *rapid.T) {
			w := genSamples(t)
			g, err := DecodeSamples(EncodeSamples(w))
			same(t, w, g, err)
		},
		"epoch": func(t *rapid.T) {
			w := genEpoch(t)
			g, err := DecodeEpoch(EncodeEpoch(w))
			for _, bs := range [][][]byte{w.Allocs, w.Moves, w.Births, g.Allocs, g.Moves, g.Births} {
				for i := range bs {
					bs[i] = append([]byte{}, bs[i]...) // nil and empty are one to the format
				}
			}
			same(t, w, g, err)
		},
		"sync": func(t *rapid.T) {
			w := genSync(t)
			g, err := DecodeSync(EncodeSync(w))
			for _, bs := range [][][]byte{w.Lists, g.Lists} {
				for i := range bs {
					bs[i] = append([]byte{}, bs[i]...)
				}
			}
			same(t, w, g, err)
		},
		"slice": func(t *rapid.T) {
			w := genSlice(t)
			g, err := DecodeSlice(EncodeSlice(w))
			for _, bs := range [][][]byte{w.Lists, w.Again, g.Lists, g.Again} {
				for i := range bs {
					bs[i] = append([]byte{}, bs[i]...)
				}
			}
			same(t, w, g, err)
		},
		"gap": func(t *rapid.T) { w := Gap{1, 2, 3, 4}; g, err := DecodeGap(EncodeGap(w)); same(t, w, g, err) },
		"end": func(t *rapid.T) { w := End{1, 2, "x"}; g, err := DecodeEnd(EncodeEnd(w)); same(t, w, g, err) },
	} {
		t.Run(name, rapid.MakeCheck(f))
	}
}

// TestBlocksRoundTrip: framing, and what is cut off at any byte is torn, never corrupt.
func TestBlocksRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := list(t, "blocks", func() Block { return genAnyBlock(t) })
		var p []byte
		for _, b := range want {
			before := len(p)
			p = AppendBlock(p, b)
			if len(p)-before != b.Size() || len(p)%BlockAlign != 0 {
				t.Fatalf("block takes %d bytes, Size says %d", len(p)-before, b.Size())
			}
		}
		i := 0
		for b, err := range Blocks(p) {
			if err != nil || !b.Equal(want[i]) {
				t.Fatalf("block %d: %v, %v", i, b.Kind, err)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d of %d blocks", i, len(want))
		}
		if len(p) > 0 {
			cut := rapid.IntRange(0, len(p)-1).Draw(t, "cut")
			for _, err := range Blocks(p[:cut]) {
				if err != nil && !errors.Is(err, ErrTorn) {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
			if _, _, err := ReadBlock(p[:min(cut, want[0].Size()-1)]); !errors.Is(err, ErrTorn) {
				t.Fatalf("cut within the first block: %v", err)
			}
		}
	})
}

// TestErrorsAreThree: torn, corrupt and too new are three errors, and a caller's mistake is none of them.
func TestErrorsAreThree(t *testing.T) {
	good := EncodeEnd(End{Time: 1, Reason: 1})
	var corrupt *CorruptError
	var tooNew *TooNewError
	var kind *KindError

	newer := good
	newer.Version = FormatVersion + 1
	newer.Payload = []byte{0xff, 0xff} // events of tomorrow
	b, _, err := ReadBlock(AppendBlock(nil, newer))
	if err != nil {
		t.Fatalf("a newer block is framed alike: %v", err)
	}
	if _, err := DecodeEnd(b); !errors.As(err, &tooNew) || tooNew.Version != FormatVersion+1 ||
		errors.As(err, &corrupt) {
		t.Errorf("newer block: %v", err)
	}
	if _, err := DecodeGap(good); !errors.As(err, &kind) {
		t.Errorf("wrong kind: %v", err)
	}
	framed := AppendBlock(nil, good)
	for name, p := range map[string][]byte{
		"kind 0":    append([]byte{0}, framed[1:]...),
		"version 0": append([]byte{7, 0}, framed[2:]...),
		"length":    append([]byte{7, 1, 0, 0, 1, 0, 0, 0x40}, framed[8:]...),
		"padding":   append(append([]byte{}, framed[:len(framed)-1]...), 1),
	} {
		if _, _, err := ReadBlock(p); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"event of version 2": "block META version=1\n  sampling ns=1",
		"foreign event":      "block END\n  gap reason=1",
		"unknown event":      "block END\n  hex 07",
		"two jvm":            "block META\n  jvm collector=1 depth=1 align=8\n  jvm collector=1 depth=1 align=8",
		"odd alignment":      "block META\n  jvm collector=1 depth=1 align=24",
		"no pause":           "block EPOCH\n  space kind=eden",
		"two pauses":         "block EPOCH\n  pause kind=1 depth=1\n  pause kind=1 depth=1",
		"kind of pause":      "block EPOCH\n  pause kind=11 depth=1",
		"spaces upside down": "block EPOCH\n  pause kind=1 depth=1\n  space kind=eden bottom=2 top=1 end=3",
		"freed beyond":       "block EPOCH\n  pause kind=1 depth=1\n  freed\n    range start=35184372088832 words=1",
		"sample id below 0": "block EPOCH\n  pause kind=1 depth=1\n  resolved\n    at id=5 addr=1\n    at " +
			"id=0xffffffffffffffff addr=1",
		"census mask":        "block EPOCH\n  pause kind=1 depth=1\n  census\n    hex 01002000",
		"string too long":    "block END\n  hex 3100018180808001",
		"integer too long":   "block END\n  hex 31ffffffffffffffffffff7f",
		"cut in an event":    "block END\n  hex 3100",
		"event of version 3": "block EPOCH version=1\n  pause kind=1 depth=1\n  lost since=1",
		"lost since 0":       "block EPOCH\n  pause kind=1 depth=1\n  lost since=0",
		"two losses":         "block EPOCH\n  pause kind=1 depth=1\n  lost since=1\n  lost since=1",
		"slice of version 2": "block SLICE version=2\n  slice ramp=1 n=1 reason=1\n  total",
		"no total of slice":  "block SLICE\n  slice ramp=1 n=1 reason=1",
		"two slices":         "block SLICE\n  slice ramp=1 n=1 reason=1\n  slice ramp=1 n=1 reason=1\n  total",
		"listed beyond":      "block SLICE\n  listed\n    range start=35184372088832 words=1",
		"no total":           "block SYNC\n  syncpoint reason=first",
		"no base":            "block SAMPLES\n  sample did=1",
		"sample id 0":        "block SAMPLES\n  samplebase\n  sample did=0",
		"type 0":             "block DEFS\n  type size=16",
		"size 0":             "block DEFS\n  type id=1",
		"own parent":         "block DEFS\n  frame id=1 parent=1",
		"lines backwards":    "block DEFS\n  method id=1 lines=0x0502fdffffffffffffffff0100",
	} {
		blocks, err := ParseText(strings.NewReader(text))
		if err != nil || len(blocks) != 1 {
			t.Fatalf("%s: %v", name, err)
		}
		if err := decodeAny(blocks[0]); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		} else if corrupt.Kind != blocks[0].Kind || corrupt.Offset < 0 ||
			corrupt.Offset > int64(len(blocks[0].Payload)) {
			t.Errorf("%s: error without a good place: %+v", name, corrupt)
		}
	}
}

func decodeAny(b Block) (err error) {
	switch b.Kind {
	case KindMeta:
		_, err = DecodeMeta(b)
	case KindDefs:
		_, err = DecodeDefs(b)
	case KindSamples:
		_, err = DecodeSamples(b)
	case KindEpoch:
		_, err = DecodeEpoch(b)
	case KindSync:
		_, err = DecodeSync(b)
	case KindGap:
		_, err = DecodeGap(b)
	case KindEnd:
		_, err = DecodeEnd(b)
	case KindSummary:
		_, err = DecodeSummary(b)
	case KindSlice:
		_, err = DecodeSlice(b)
	case KindRefs:
		_, err = DecodeRefs(b)
	}
	return err
}
