package trace_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/trace"
	"github.com/heapcam/heapcam/trace/tracetest"
)

var update = flag.Bool("update", false, "write the golden texts anew from the reference JVM")

// write gives the text of blocks.
func write(t testing.TB, blocks []trace.Block) string {
	t.Helper()
	var out bytes.Buffer
	w := trace.NewTextWriter(&out)
	for _, b := range blocks {
		if err := w.Block(b); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func parse(t testing.TB, text string) []trace.Block {
	t.Helper()
	blocks, err := trace.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

func sameBlocks(t testing.TB, want, got []trace.Block) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d blocks, want %d", len(got), len(want))
	}
	for i := range want {
		if !want[i].Equal(got[i]) {
			t.Fatalf("block %d (%v) differs:\nwant %x\ngot  %x", i, want[i].Kind, want[i].Payload, got[i].Payload)
		}
	}
}

// golden streams are small enough to be read by people.
var golden = map[string]struct {
	cfg   tracetest.Config
	steps int
}{
	"serial-survivors": {tracetest.Config{Seed: 1, Eden: 512, SampleEvery: 10}, 3},
	"parallel-full": {tracetest.Config{Seed: 2, Collector: trace.CollectorParallel, Depth: trace.DepthFull, Eden: 512,
		SampleEvery: 10}, 3},
	"g1-survivors": {tracetest.Config{Seed: 3, Collector: trace.CollectorG1, Eden: 512, SampleEvery: 10,
		Remark: 0.3}, 4},
	"parallel-slices": {tracetest.Config{Seed: 5, Collector: trace.CollectorParallel, Eden: 512, SampleEvery: 10,
		Slice: 60, Drop: 0.3}, 8},
}

// TestGolden reads the texts under testdata: text → blocks → text is the same text, every block decodes, and the
// plainest reader follows the stream. Run with -update after a change of the model.
func TestGolden(t *testing.T) {
	if *update {
		for name, g := range golden {
			m := tracetest.New(g.cfg)
			var blocks []trace.Block
			for i := range g.steps {
				blocks = append(blocks, m.Step(i == 2).Blocks...)
			}
			blocks = append(blocks, m.Walk().Blocks...)
			blocks = append(blocks, m.FullGC().Blocks...)
			blocks = append(blocks, m.End())
			if err := os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(write(t, blocks)),
				0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, _ := filepath.Glob("testdata/*.txt")
	if len(files) < len(golden)+1 {
		t.Fatalf("only %d golden files", len(files))
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			blocks := parse(t, string(text))
			if got := write(t, blocks); got != string(text) {
				t.Errorf("text changes on its way through blocks:\n%s", firstDiff(string(text), got))
			}
			if strings.HasPrefix(filepath.Base(f), "broken") {
				return
			}
			r := tracetest.NewReader()
			for i, b := range blocks {
				if err := r.Apply(b); err != nil || r.Mismatch != "" {
					t.Errorf("block %d (%v): %v %s", i, b.Kind, err, r.Mismatch)
				}
			}
		})
	}
}

func firstDiff(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return "want " + x[i] + "\ngot  " + y[i]
		}
	}
	return "one is longer"
}

// TestTextRoundTrip: whole random streams survive the text unchanged, and nothing of them needs hex.
func TestTextRoundTrip(t *testing.T) {
	for seed := range uint64(6) {
		for _, col := range []uint64{trace.CollectorSerial, trace.CollectorParallel, trace.CollectorG1} {
			cfg := tracetest.All(seed, col, trace.DepthSurvivors+seed%2)
			cfg.Eden = 1024
			m := tracetest.New(cfg)
			var blocks []trace.Block
			for i := range 12 {
				blocks = append(blocks, m.Step(i%4 == 0).Blocks...)
			}
			blocks = append(append(blocks, m.Walk().Blocks...), m.End())
			text := write(t, blocks)
			if i := strings.Index(text, " hex "); i >= 0 {
				t.Fatalf("a legal stream needs hex: %.100s", text[i:])
			}
			sameBlocks(t, blocks, parse(t, text))
		}
	}
}

// TestTextOfUnreadable: what cannot be read survives as hex.
func TestTextOfUnreadable(t *testing.T) {
	blocks := []trace.Block{
		{Kind: 77, Version: 1, Payload: []byte("what is this")},
		{Kind: trace.KindEnd, Version: 9, Seq: 1 << 63, Payload: []byte{49, 1, 1, 0}},
		// walk tokens without types, unknown tag
		{Kind: trace.KindEpoch, Version: 1, Flags: 3, Payload: []byte{27, 3, 0, 0, 0, 1, 2, 3, 99}},
		{Kind: trace.KindMeta, Version: 1, Payload: []byte("\x02\x05\x06a\"# \xff\n")},
		{Kind: trace.KindLayout, Version: 1},
		{Kind: trace.KindEpoch, Version: 1,
			Payload: append([]byte{33, 200, 0, 0, 0}, bytes.Repeat([]byte{255}, 200)...)},
	}
	sameBlocks(t, blocks, parse(t, write(t, blocks)))
}

// TestBrief: no tokens, and what is written says how much there is.
func TestBrief(t *testing.T) {
	m := tracetest.New(tracetest.Config{Seed: 5})
	var out bytes.Buffer
	w := trace.NewTextWriter(&out)
	w.Brief = true
	for _, b := range m.Step(true).Blocks {
		if err := w.Block(b); err != nil {
			t.Fatal(err)
		}
	}
	if s := out.String(); strings.Contains(s, "    ") || !strings.Contains(s, "list # ") {
		t.Errorf("brief text:\n%s", s)
	}
}

func TestSyntaxErrors(t *testing.T) {
	for _, text := range []string{
		"pause gc=1", "block", "block NOPE", "block 300", "block END x=1", "block END\n  nope",
		"block END\n  end time=x",
		"block END\n  end time=1 time=2", "block END\n  end foo=1", "block END\n  end text=\"abc",
		"block END\n  end reason=nope",
		"block END\n   end", "block END\n    end", "block EPOCH\n  moves x=1", "block EPOCH\n  moves\n    nope",
		"block EPOCH\n  moves\n    dead word",
		"block EPOCH\n  moves\n    dead type=1 foo=2", "block EPOCH\n  births\n    dead type=1",
		"block EPOCH\n  census\n    row born_old=1",
		"block EPOCH\n  freed\n    at start=1", "block END\n  hex 0", "block END\n  hex 00 00",
		"block DEFS\n  method lines=5:1,4:1", "block END\n  =1",
	} {
		_, err := trace.ParseText(strings.NewReader(text))
		var syn *trace.SyntaxError
		if !errors.As(err, &syn) || syn.Line != strings.Count(text, "\n")+1 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzBlocks reads any bytes as blocks, decodes them, walks every token, writes them as text and reads that back.
func FuzzBlocks(f *testing.F) {
	for _, col := range []uint64{trace.CollectorSerial, trace.CollectorG1} {
		m := tracetest.New(tracetest.Config{Seed: 9, Collector: col, Eden: 512, Depth: trace.DepthFull})
		var p []byte
		for range 2 {
			for _, b := range m.Step(true).Blocks {
				p = trace.AppendBlock(p, b)
			}
		}
		f.Add(trace.AppendBlock(p, m.End()))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		types := tracetest.New(tracetest.Config{}).Types()
		var blocks []trace.Block
		for b, err := range trace.Blocks(p) {
			if err != nil {
				_ = err.Error()
				break
			}
			blocks = append(blocks, b)
			decodeAll(t, b, types)
		}
		once := write(t, blocks)
		again := parse(t, once)
		if twice := write(t, again); twice != once {
			t.Fatalf("text is not stable:\n%s", firstDiff(once, twice))
		}
	})
}

// FuzzPayload hands any bytes to the decoder of any kind, without framing in the way.
func FuzzPayload(f *testing.F) {
	m := tracetest.New(tracetest.Config{Seed: 4, Eden: 512, SampleEvery: 4})
	for range 3 {
		for _, b := range m.Step(true).Blocks {
			f.Add(byte(b.Kind), b.Payload)
		}
	}
	f.Add(byte(trace.KindDefs), trace.EncodeDefs(trace.Defs{Types: []trace.Type{{ID: 7, Size: 16, Name: "A"}},
		GoneTypes: []uint64{7}, GoneLoaders: []uint64{2}}).Payload)
	f.Add(byte(trace.KindMeta), trace.EncodeMeta(remarks()).Payload)
	f.Fuzz(func(t *testing.T, kind byte, p []byte) {
		b := trace.Block{Kind: trace.Kind(kind), Version: trace.FormatVersion, Payload: p}
		decodeAll(t, b, m.Types())
		for _, s := range []string{
			b.Kind.String(), trace.CleanString(p), trace.PrettyClass(string(p)), trace.PrettySignature(string(p))} {
			_ = s
		}
	})
}

// FuzzTokens reads any bytes as tokens.
func FuzzTokens(f *testing.F) {
	types := trace.NewTypeTable(8)
	for i, ty := range []trace.Type{
		{Size: 16}, {Size: 40}, {Size: 16, Log2: 2, Flags: trace.TypeArray}, {Flags: trace.TypeVariable}} {
		ty.ID = uint64(i + 1)
		if err := types.Define(ty); err != nil {
			f.Fatal(err)
		}
	}
	f.Add([]byte{0, 100, 8, 16, 17, 4, 24, 5, 10, 7})
	f.Add([]byte{4, 2, 3, 1, 10, 4, 5, 0})
	f.Fuzz(func(t *testing.T, p []byte) { tokens(t, p, p, types) })
}

// FuzzText: whatever parses can be written, and is then stable.
func FuzzText(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txt")
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text[:min(len(text), 3000)]))
	}
	f.Fuzz(func(t *testing.T, text string) {
		blocks, err := trace.ParseText(strings.NewReader(text))
		if err != nil {
			return
		}
		once := write(t, blocks)
		sameBlocks(t, blocks, parse(t, once))
	})
}

// decodeAll calls every decoder that takes b and every getter of what it gives, and compares what is given with the
// limits.
func decodeAll(t *testing.T, b trace.Block, types *trace.TypeTable) {
	check := func(err error) bool {
		if err == nil {
			return true
		}
		var c *trace.CorruptError
		var n *trace.TooNewError
		if !errors.As(err, &c) && !errors.As(err, &n) {
			t.Fatalf("%v: error of another kind: %v", b.Kind, err)
		}
		if c != nil && (c.Offset < 0 || c.Offset > int64(len(b.Payload))) {
			t.Fatalf("%v: offset outside: %v", b.Kind, err)
		}
		return false
	}
	var err error
	switch b.Kind {
	case trace.KindMeta:
		var m trace.Meta
		if m, err = trace.DecodeMeta(b); err == nil {
			_, _ = m.First()
			if got, err := trace.DecodeMeta(trace.EncodeMeta(m)); err != nil || !reflect.DeepEqual(m, got) {
				t.Fatalf("what was decoded can not be encoded: %v\nwant %+v\ngot  %+v", err, m, got)
			}
			b.Version, b.Seq = 1, 0
			_, _ = trace.DecodeMeta(b)
		}
	case trace.KindDefs:
		var d trace.Defs
		if d, err = trace.DecodeDefs(b); err == nil {
			if err := types.DefineAll(d.Types); err != nil {
				t.Fatalf("decoded type can not be defined: %v", err)
			}
			for i := range d.Types {
				_ = d.Types[i].Pretty()
				types.Words(d.Types[i].ID, 7)
			}
			for i := range d.Methods {
				_ = d.Methods[i].Pretty()
				_ = d.Methods[i].Line(5)
			}
			if got, err := trace.DecodeDefs(trace.EncodeDefs(d)); err != nil || len(got.Frames) != len(d.Frames) {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	case trace.KindSamples:
		_, err = trace.DecodeSamples(b)
	case trace.KindEpoch:
		var e *trace.Epoch
		if e, err = trace.DecodeEpoch(b); err == nil {
			for _, x := range append(append([][]byte{}, e.Allocs...), e.Moves...) {
				tokens(t, x, nil, types)
			}
			for _, x := range e.Births {
				tokens(t, nil, x, types)
			}
			for _, r := range e.Freed {
				if r.Start > trace.MaxAddr || r.Words > trace.MaxAddr-r.Start {
					t.Fatalf("freed %+v", r)
				}
			}
			if _, err := trace.DecodeEpoch(trace.EncodeEpoch(e)); err != nil {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	case trace.KindSync:
		var s *trace.Sync
		if s, err = trace.DecodeSync(b); err == nil {
			for _, x := range s.Lists {
				tokens(t, nil, x, types)
			}
			if _, err := trace.DecodeSync(trace.EncodeSync(s)); err != nil {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	case trace.KindSlice:
		var s *trace.Slice
		if s, err = trace.DecodeSlice(b); err == nil {
			for _, x := range append(append([][]byte{}, s.Lists...), s.Again...) {
				tokens(t, nil, x, types)
			}
			if _, err := trace.DecodeSlice(trace.EncodeSlice(s)); err != nil {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	case trace.KindRefs:
		var p *trace.RefPart
		if p, err = trace.DecodeRefs(b); err == nil {
			for _, x := range p.Lists {
				tokens(t, nil, x, types)
			}
			if _, err := trace.DecodeRefs(trace.EncodeRefs(p)); err != nil {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	case trace.KindGap:
		_, err = trace.DecodeGap(b)
	case trace.KindEnd:
		_, err = trace.DecodeEnd(b)
	case trace.KindSummary:
		var s *trace.Summary
		if s, err = trace.DecodeSummary(b); err == nil {
			if _, err := trace.DecodeSummary(trace.EncodeSummary(s)); err != nil {
				t.Fatalf("what was decoded can not be encoded: %v", err)
			}
		}
	}
	check(err)
	tw := trace.NewTextWriter(io.Discard)
	tw.Types = types
	if err := tw.Block(b); err != nil {
		t.Fatal(err)
	}
}

func tokens(t *testing.T, walk, list []byte, types *trace.TypeTable) {
	for _, all := range []bool{false, true} {
		w := trace.NewWalkTokens(walk, types)
		w.All = all
		for w.Next() {
			if w.Addr > trace.MaxAddr || w.Words > trace.MaxAddr-w.Addr || w.Dest > trace.MaxAddr {
				t.Fatalf("token outside of the address space: %+v", w)
			}
		}
		if err := w.Err(); err != nil {
			_ = err.Error()
		}
		l := trace.NewListTokens(list, types)
		l.All = all
		for l.Next() {
			if l.Addr > trace.MaxAddr || l.Words > trace.MaxAddr-l.Addr {
				t.Fatalf("token outside of the address space: %+v", l)
			}
		}
		if err := l.Err(); err != nil {
			_ = err.Error()
		}
	}
}

// TestLongNames: a class with a very long name does not repeat it in the line of each object.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("é", 32500)
	var bs []trace.Block
	types := 0
	for _, b := range tracetest.New(tracetest.Config{Seed: 1, Eden: 512}).Step(true).Blocks {
		if b.Kind == trace.KindDefs {
			d, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range d.Types {
				d.Types[i].Name = long
				types++
			}
			b = trace.EncodeDefs(d)
		}
		bs = append(bs, b)
	}
	text := write(t, bs)
	if n := strings.Count(text, long); n != types || types == 0 || !strings.Contains(text, "é… (65000 bytes)") {
		t.Errorf("%d types, %d whole names in %d bytes", types, n, len(text))
	}
	sameBlocks(t, bs, parse(t, text))
}
