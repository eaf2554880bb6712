package session

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestNewest: one who goes on with a recording gets the definitions of all its files, the newest last, and what the
// newest one says of the JVM.
func TestNewest(t *testing.T) {
	cfg := ringstore.Config{Dir: filepath.Join(t.TempDir(), "x"), MaxTraceSize: 1 << 30, Compression: "none"}
	who := ringstore.Identity{Session: strings.Repeat("ab", 16), Name: "x", PID: 1}
	st, err := OpenStore(cfg, who, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defs := func(id uint64) []byte { return appendDefs(nil, trace.Defs{Frames: []trace.Frame{{ID: id, Method: 1}}}) }
	head := func(id uint64) []byte {
		return append(trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Text: "n"}}})),
			defs(id)...)
	}
	for i := range uint64(3) {
		if err := st.Rotate(head(10*i+1), ringstore.FrameInfo{Source: i + 1, LastGC: i,
			Flags: ringstore.FlagMarked | ringstore.FlagDefs}); err != nil {
			t.Fatal(err)
		}
		if err := st.Append(defs(10*i+2), ringstore.FrameInfo{Source: i + 1, LastGC: i + 5,
			Flags: ringstore.FlagMarked | ringstore.FlagDefs}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = OpenStore(cfg, who, zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var frames []uint64
	metas := 0
	last := st.Newest(func(b trace.Block) {
		switch b.Kind {
		case trace.KindMeta:
			metas++
		case trace.KindDefs:
			d, err := trace.DecodeDefs(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range d.Frames {
				frames = append(frames, f.ID)
			}
		}
	})
	if !slices.Equal(frames, []uint64{1, 2, 11, 12, 21, 22}) || metas != 1 || last != 7 {
		t.Errorf("frames %v, %d METAs, last collection %d", frames, metas, last)
	}
}
