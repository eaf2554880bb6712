package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/trace"
)

// TestNewest: a session that continues a recording gets the definitions of all its files, the newest last, and the
// newest properties of the JVM.
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
		if err := st.Write([][]byte{defs(10*i + 2)}, ringstore.FrameInfo{Source: i + 1, LastGC: i + 5,
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

// TestNewestIsOfOneRecording: a file of another recording that lies in the folder, newer than all others, defines
// nothing here.
func TestNewestIsOfOneRecording(t *testing.T) {
	out := t.TempDir()
	record := func(name, session string, files int) (ringstore.Config, ringstore.Identity) {
		cfg := ringstore.Config{Dir: filepath.Join(out, name), MaxTraceSize: 1 << 30, Compression: "none"}
		who := ringstore.Identity{Session: strings.Repeat(session, 16), Name: name, PID: 1}
		st, err := OpenStore(cfg, who, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		b := trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Text: name}}}))
		b = appendDefs(b, trace.Defs{Types: []trace.Type{{ID: 1, Size: 16, Name: name}}})
		info := ringstore.FrameInfo{Source: 1, LastGC: uint64(len(name)),
			Flags: ringstore.FlagMarked | ringstore.FlagDefs}
		for range files {
			err = errors.Join(err, st.Rotate(b, info))
		}
		if err = errors.Join(err, st.Close()); err != nil {
			t.Fatal(err)
		}
		return cfg, who
	}
	own, who := record("own", "ab", 1)
	other, _ := record("another", "cd", 2)
	const newer = "00000002.hcr"
	if err := os.Rename(filepath.Join(other.Dir, newer), filepath.Join(own.Dir, newer)); err != nil {
		t.Fatal(err)
	}
	st, err := OpenStore(own, who, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	var names []string
	last := st.Newest(func(b trace.Block) {
		if d, err := trace.DecodeDefs(b); b.Kind == trace.KindDefs && err == nil {
			names = append(names, d.Types[0].Name)
		}
	})
	if !slices.Equal(names, []string{"own"}) || last != 3 {
		t.Errorf("%q, last collection %d", names, last)
	}
}
