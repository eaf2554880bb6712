package trace

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tokenTypes is a table with one type of each form, and one far away.
func tokenTypes(align uint64) *TypeTable {
	t := NewTypeTable(align)
	for _, ty := range []Type{
		{ID: 1, Size: 16}, {ID: 2, Size: 40}, {ID: 3, Size: 16, Flags: TypeArray},
		{ID: 4, Size: 12, Log2: 3, Flags: TypeArray},
		{ID: 5, Size: 112, Flags: TypeVariable}, {ID: MaxTypeID, Size: 24}, {ID: 300, Size: 24},
	} {
		if err := t.Define(ty); err != nil {
			panic(err)
		}
	}
	return t
}

func TestSizes(t *testing.T) {
	t8, t16 := tokenTypes(8), tokenTypes(16)
	for _, c := range []struct{ typ, length, w8, w16 uint64 }{
		{1, 0, 2, 2}, {2, 0, 5, 6}, {3, 0, 2, 2}, {3, 1, 3, 4}, {3, 8, 3, 4}, {3, 9, 4, 4}, {4, 0, 2, 2}, {4, 1, 3, 4},
		{5, 14, 14, 14},
		{MaxTypeID, 7, 3, 4}, {3, MaxLength, 2 + 1<<28, 2 + 1<<28},
	} {
		for a, tt := range map[uint64]*TypeTable{c.w8: t8, c.w16: t16} {
			if got, ok := tt.Words(c.typ, c.length); !ok || got != a {
				t.Errorf("type %d length %d: %d words, %v, want %d", c.typ, c.length, got, ok, a)
			}
		}
	}
	for _, c := range [][2]uint64{{0, 0}, {6, 0}, {3, MaxLength + 1}, {5, 0}, {5, MaxObject + 1}, {1 << 40, 0}} {
		if w, ok := t8.Words(c[0], c[1]); ok {
			t.Errorf("type %d length %d has %d words", c[0], c[1], w)
		}
	}
	if len(t8.dense) > denseSlack+100 {
		t.Errorf("a far id made the table %d long", len(t8.dense))
	}
}

type tokObj struct {
	addr, dest uint64
	typ        uint32
	length     uint64
	dead       bool
}

// TestWalkRoundTrip: objects written by the encoder come out of the iterator at the same addresses and destinations;
// several destinations are filled side by side, so that lanes are hit, missed and replaced.
func TestWalkRoundTrip(t *testing.T) {
	lanesHit := 0
	rapid.Check(t, func(t *rapid.T) {
		types := tokenTypes(rapid.SampledFrom([]uint64{8, 16}).Draw(t, "align"))
		enc := NewWalkEncoder(types)
		var want []tokObj
		var plabs [6]uint64
		for i := range plabs {
			plabs[i] = rapid.Uint64Range(0, 1<<40).Draw(t, "plab")
		}
		for range rapid.IntRange(0, 4).Draw(t, "segments") {
			start := rapid.Uint64Range(0, 1<<40).Draw(t, "start")
			enc.Begin(start, 1<<30)
			at := start
			for range rapid.IntRange(0, 30).Draw(t, "objects") {
				if rapid.IntRange(0, 3).Draw(t, "skip") == 0 {
					at += rapid.Uint64Range(0, 1000).Draw(t, "words")
					enc.SkipTo(at)
				}
				o := tokObj{addr: at, typ: rapid.SampledFrom([]uint32{1, 2, 3, 4, 5, 300, MaxTypeID}).Draw(t, "type"),
					dead: rapid.Bool().Draw(t, "dead")}
				if types.HasLength(uint64(o.typ)) {
					o.length = rapid.Uint64Range(1, 5000).Draw(t, "length")
				}
				n, _ := types.Words(uint64(o.typ), o.length)
				if o.dead {
					enc.Dead(o.typ, o.length)
				} else {
					i := rapid.IntRange(0, len(plabs)-1).Draw(t, "plab")
					o.dest = plabs[i]
					plabs[i] += n
					enc.Move(o.typ, o.length, o.dest)
				}
				if at += n; enc.At() != at {
					t.Fatalf("encoder is at %d, want %d", enc.At(), at)
				}
				want = append(want, o)
			}
			enc.End()
		}
		if err := enc.Err(); err != nil {
			t.Fatal(err)
		}
		w, i := NewWalkTokens(enc.Bytes(), types), 0
		for w.Next() {
			if w.Kind == WalkSegment {
				continue
			}
			got := tokObj{w.Addr, w.Dest, w.Type, w.Length, w.Kind == WalkDead}
			if got.dead {
				got.dest = 0
			} else if w.Form >= walkLane0 {
				lanesHit++
			}
			if got != want[i] {
				t.Fatalf("object %d: %+v, want %+v", i, got, want[i])
			}
			if n, _ := types.Words(uint64(w.Type), w.Length); n != w.Words {
				t.Fatalf("object %d has %d words, want %d", i, w.Words, n)
			}
			i++
		}
		if err := w.Err(); err != nil || i != len(want) {
			t.Fatalf("%d of %d objects, %v", i, len(want), err)
		}
		w, i = NewWalkTokens(enc.Bytes(), types), 0
		for w.Alive = true; w.Next(); {
			if w.Kind == WalkSegment {
				continue
			}
			for i < len(want) && want[i].dead {
				i++
			}
			if got := (tokObj{w.Addr, w.Dest, w.Type, w.Length, w.Kind == WalkDead}); i == len(want) || got != want[i] {
				t.Fatalf("alive object %d: %+v", i, got)
			}
			i++
		}
		if w.Err() != nil || slices.ContainsFunc(want[i:], func(o tokObj) bool { return !o.dead }) {
			t.Fatalf("%d of %d objects, %v", i, len(want), w.Err())
		}
	})
	if lanesHit == 0 {
		t.Error("no lane was ever hit")
	}
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := tokenTypes(8)
		enc := NewListEncoder(types)
		var want []tokObj
		at := rapid.Uint64Range(0, 1<<40).Draw(t, "start")
		for range rapid.IntRange(0, 40).Draw(t, "objects") {
			switch rapid.IntRange(0, 5).Draw(t, "gap") {
			case 0:
				at += rapid.Uint64Range(0, 1<<20).Draw(t, "words")
			case 1:
				at = rapid.Uint64Range(0, 1<<40).Draw(t, "jump")
			}
			o := tokObj{addr: at, typ: rapid.SampledFrom([]uint32{1, 2, 3, 4, 5, 300, MaxTypeID}).Draw(t, "type")}
			if types.HasLength(uint64(o.typ)) {
				o.length = rapid.Uint64Range(1, 5000).Draw(t, "length")
			}
			enc.Object(o.addr, o.typ, o.length)
			n, _ := types.Words(uint64(o.typ), o.length)
			at += n
			want = append(want, o)
		}
		blob := enc.Bytes()
		if err := enc.Err(); err != nil {
			t.Fatal(err)
		}
		l, i := NewListTokens(blob, types), 0
		for l.Next() {
			if l.Kind != ListObject {
				continue
			}
			if got := (tokObj{addr: l.Addr, typ: l.Type, length: l.Length}); got != want[i] {
				t.Fatalf("object %d: %+v, want %+v", i, got, want[i])
			}
			i++
		}
		if err := l.Err(); err != nil || i != len(want) {
			t.Fatalf("%d of %d objects, %v", i, len(want), err)
		}
	})
}

// TestTokensAreBounded: each of these would lead a naive reader out of its range.
func TestTokensAreBounded(t *testing.T) {
	types := tokenTypes(8)
	seg := appendU(appendS(nil, 100), 10) // [100, 110)
	tok := func(vs ...uint64) []byte {
		b := append([]byte{}, seg...)
		for _, v := range vs {
			b = appendU(b, v)
		}
		return b
	}
	for name, blob := range map[string][]byte{
		"unknown type":         tok(9<<3, walkEnd),
		"type 0":               tok(0<<3, walkEnd),
		"object beyond range":  tok(3<<3, 1000, walkEnd),
		"skip beyond range":    tok(11<<3|walkSkip, walkEnd),
		"length too long":      tok(3<<3, MaxLength+1, walkEnd),
		"variable size 0":      tok(5<<3, 0, walkEnd),
		"end with a value":     tok(1<<3 | walkEnd),
		"no end":               tok(1 << 3),
		"nothing":              seg,
		"half a segment":       seg[:2],
		"destination negative": tok(1<<3|walkMove, zigzag(-1), walkEnd),
		"destination far":      tok(1<<3|walkMove, zigzag(MaxAddr), walkEnd),
		"segment negative":     appendU(appendS(nil, -1), 1),
		"segment far":          appendU(appendS(nil, MaxAddr), 1),
	} {
		w := NewWalkTokens(blob, types)
		for w.Next() {
			if w.Addr+w.Words > MaxAddr || w.Dest > MaxAddr {
				t.Errorf("%s: gave %+v", name, w)
			}
		}
		if w.Err() == nil {
			t.Errorf("%s: no error", name)
		}
		if w.Next() || w.Err() == nil {
			t.Errorf("%s: error does not stick", name)
		}
		a := NewWalkTokens(blob, types)
		for a.Alive = true; a.Next(); {
		}
		if a.Err() == nil || a.Err().Error() != w.Err().Error() {
			t.Errorf("%s: passing over the dead gives %v instead of %v", name, a.Err(), w.Err())
		}
	}
	for name, blob := range map[string][]byte{
		"unknown type":  appendU(appendS(nil, 0), 7),
		"no end":        appendU(appendS(nil, 0), 2),
		"skip far":      append(appendU(appendU(appendS(nil, 5), listSkip), MaxAddr), listEnd),
		"object far":    append(appendU(appendU(appendS(nil, MaxAddr), 4), MaxLength), listEnd),
		"segment below": appendS(nil, -1),
	} {
		l := NewListTokens(blob, types)
		for l.Next() {
		}
		if l.Err() == nil {
			t.Errorf("list, %s: no error", name)
		}
	}
}

// TestIteratorsDoNotAllocate: they are the inner loop of replay.
func TestIteratorsDoNotAllocate(t *testing.T) {
	types, blob := benchWalk(1000)
	if n := testing.AllocsPerRun(10, func() {
		w := NewWalkTokens(blob, types)
		for w.Next() {
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// benchWalk is an eden of small objects, a tenth of which survives into two buffers.
func benchWalk(objects int) (*TypeTable, []byte) {
	types := tokenTypes(8)
	e := NewWalkEncoder(types)
	e.Begin(0, 1<<40)
	var plab [2]uint64
	plab[0], plab[1] = 1<<41, 1<<42
	for i := range objects {
		typ, length := uint32(1+i%3), uint64(0)
		if typ == 3 {
			length = uint64(i % 100)
		}
		if i%10 == 0 {
			n, _ := types.Words(uint64(typ), length)
			p := &plab[i/10%2]
			e.Move(typ, length, *p)
			*p += n
		} else {
			e.Dead(typ, length)
		}
	}
	e.End()
	return types, e.Bytes()
}

func BenchmarkWalkTokens(b *testing.B) {
	const n = 1 << 20
	types, blob := benchWalk(n)
	b.SetBytes(int64(len(blob)))
	sum := uint64(0)
	for b.Loop() {
		w := NewWalkTokens(blob, types)
		for w.Next() {
			sum += w.Words
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mtokens/s")
	_ = sum
}

func BenchmarkListTokens(b *testing.B) {
	const n = 1 << 20
	types := tokenTypes(8)
	e := NewListEncoder(types)
	at := uint64(0)
	for i := range n {
		typ := uint32(1 + i%3)
		length := uint64(i % 100)
		e.Object(at, typ, length)
		w, _ := types.Words(uint64(typ), length)
		at += w
	}
	blob := e.Bytes()
	sum := uint64(0)
	for b.Loop() {
		l := NewListTokens(blob, types)
		for l.Next() {
			sum += l.Words
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Mtokens/s")
	_ = sum
}

// TestListCount: what Count counts and what Next gives are together what Next gives alone, up to any address, of whole
// and of damaged blobs.
func TestListCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := NewTypeTable(8)
		for id := uint64(1); id <= 40; id++ {
			ty := Type{ID: id, Size: 16 + 8*(id%5), Name: "T", Flags: id % 3, Log2: id % 4}
			if err := types.Define(ty); err != nil {
				t.Fatal(err)
			}
		}
		blob := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) byte {
			return byte(rapid.OneOf(rapid.IntRange(0, 45), rapid.IntRange(0, 255)).Draw(t, "b"))
		}), 0, 80).Draw(t, "blob")
		before := rapid.Uint64Range(0, 400).Draw(t, "before")
		type sum struct{ objects, words uint64 }
		want, got := map[uint32]sum{}, map[uint32]sum{}
		far := 0 // objects from before on: Next gives them
		add := func(m map[uint32]sum, typ uint32, n, words uint64) {
			m[typ] = sum{m[typ].objects + n, m[typ].words + words}
		}
		alone, l := NewListTokens(blob, types), NewListTokens(blob, types)
		for alone.Next() {
			if alone.Kind == ListObject {
				add(want, alone.Type, 1, alone.Words)
				if alone.Addr >= before {
					far++
				}
			}
		}
		objects, words := make([]uint64, l.Types()), make([]uint64, l.Types())
		for {
			l.Count(objects, words, before)
			if !l.Next() {
				break
			}
			if l.Kind == ListObject {
				add(got, l.Type, 1, l.Words)
				if l.Addr >= before {
					far--
				}
			}
		}
		for typ, n := range objects {
			if n > 0 {
				add(got, uint32(typ), n, words[typ])
			}
		}
		if far != 0 || !maps.Equal(want, got) || (alone.Err() == nil) != (l.Err() == nil) {
			t.Fatalf("counted %v, %v; want %v, %v", got, l.Err(), want, alone.Err())
		}
	})
}

// TestListObjects: what Objects and Next give in turns is what Next gives alone, of whole and of damaged blobs.
func TestListObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := NewTypeTable(8)
		for id := uint64(1); id <= 40; id++ {
			ty := Type{ID: id, Size: 16 + 8*(id%5), Name: "T", Flags: id % 3, Log2: id % 4}
			if err := types.Define(ty); err != nil {
				t.Fatal(err)
			}
		}
		blob := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) byte {
			return byte(rapid.OneOf(rapid.IntRange(0, 45), rapid.IntRange(0, 255)).Draw(t, "b"))
		}), 0, 80).Draw(t, "blob")
		var want, got []Listed
		one := func(l *ListTokens) Listed { return Listed{l.Addr, uint32(l.Words), uint32(l.Length), l.Type} }
		alone, l := NewListTokens(blob, types), NewListTokens(blob, types)
		for alone.Next() {
			if alone.Kind == ListObject {
				want = append(want, one(&alone))
			}
		}
		out := make([]Listed, rapid.IntRange(1, 5).Draw(t, "room"))
		for {
			n := l.Objects(out)
			if got = append(got, out[:n]...); n == len(out) {
				continue
			}
			if !l.Next() {
				break
			}
			if l.Kind == ListObject {
				got = append(got, one(&l))
			}
		}
		if !slices.Equal(want, got) || (alone.Err() == nil) != (l.Err() == nil) {
			t.Fatalf("got %v, %v; want %v, %v", got, l.Err(), want, alone.Err())
		}
	})
}

// TestWalkMoves: what Moves and Next give in turns is what Next gives alone, of whole and of damaged blobs.
func TestWalkMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		types := NewTypeTable(8)
		for id := uint64(1); id <= 40; id++ {
			ty := Type{ID: id, Size: 16 + 8*(id%5), Name: "T", Flags: id % 3, Log2: id % 4}
			if err := types.Define(ty); err != nil {
				t.Fatal(err)
			}
		}
		form := rapid.SampledFrom([]byte{walkDead, walkMove, walkLane0, walkLane0 + 1, walkLane0 + 3, walkSkip,
			walkEnd})
		blob := []byte{16, 0xff, 0x7f} // a segment of 16,383 words
		for range rapid.IntRange(0, 40).Draw(t, "tokens") {
			v := rapid.IntRange(0, 42).Draw(t, "v")
			blob = appendU(blob, uint64(v)<<walkBits|uint64(form.Draw(t, "form")))
			blob = append(blob, rapid.SliceOfN(rapid.Byte(), 0, 2).Draw(t, "more")...)
		}
		alive := rapid.Bool().Draw(t, "alive")
		var want, got []Moved
		one := func(w *WalkTokens) Moved {
			return Moved{w.Addr, w.Dest, uint32(w.Words), uint32(w.Length), w.Type}
		}
		alone, w := NewWalkTokens(blob, types), NewWalkTokens(blob, types)
		alone.Alive, w.Alive = alive, alive
		for alone.Next() {
			if alone.Kind == WalkMove {
				want = append(want, one(&alone))
			}
		}
		out := make([]Moved, rapid.IntRange(1, 5).Draw(t, "room"))
		for {
			n := w.Moves(out)
			if got = append(got, out[:n]...); n == len(out) {
				continue
			}
			if !w.Next() {
				break
			}
			if w.Kind == WalkMove {
				got = append(got, one(&w))
			}
		}
		if !slices.Equal(want, got) || (alone.Err() == nil) != (w.Err() == nil) {
			t.Fatalf("got %v, %v; want %v, %v", got, w.Err(), want, alone.Err())
		}
	})
}
