//go:build unix

package ringstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
)

// damaged makes a recording of three files of three frames each and lets change work on the second.
func damaged(t *testing.T, change func(b []byte) []byte) (dir string) {
	dir = filepath.Join(t.TempDir(), "rec")
	s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20, Compression: segment.None},
		folder.Identity{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(9) {
		text := note(strings.Repeat(string('a'+rune(i)), 50))
		if i%3 == 0 {
			err = s.Rotate(text, segment.FrameInfo{Source: i + 1})
		} else {
			err = s.Append(text, segment.FrameInfo{Source: i + 1})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(dir, "00000002.hcr")
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// future makes a ring file one of a later version, whose header may have another form.
func future(b []byte) []byte {
	b[8], b[100] = 99, 1
	return b
}

const frameLen = segment.FrameSize + 72 // a note of 50 bytes

// TestCheckFlags: flags of a frame that say what is not true of reference listings are damage, because readers skip
// frames by them. Where they say nothing, nothing is wrong.
func TestCheckFlags(t *testing.T) {
	part := func(n, flags uint64) trace.Block {
		return trace.EncodeRefs(&trace.RefPart{Listing: 1, N: n, Flags: flags})
	}
	const alone, listed = segment.FlagApart | segment.FlagReferences, segment.FlagListed
	for name, c := range map[string]struct {
		flags  uint16
		blocks []trace.Block
		why    string
	}{
		"a listing":              {alone | listed, []trace.Block{part(1, trace.RefFirst), part(2, trace.RefLast)}, ""},
		"a part":                 {alone, []trace.Block{part(2, 0)}, ""},
		"what none understands":  {alone, []trace.Block{{Kind: trace.KindRefs, Version: 1, Payload: []byte{255}}}, ""},
		"flags that say nothing": {0, []trace.Block{part(1, trace.RefFirst)}, ""},
		"not alone": {alone | listed, []trace.Block{part(1, trace.RefFirst), trace.EncodeGap(trace.Gap{})},
			"reference listings alone"},
		"not said":  {segment.FlagApart, []trace.Block{part(2, 0)}, "no reference listing"},
		"it begins": {alone, []trace.Block{part(1, trace.RefFirst)}, "begins or ends"},
		"it ends":   {alone, []trace.Block{part(2, trace.RefLast)}, "begins or ends"},
	} {
		dir := filepath.Join(t.TempDir(), "rec")
		s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20}, folder.Identity{Session: session})
		if err != nil {
			t.Fatal(err)
		}
		var frame []byte
		for _, b := range c.blocks {
			frame = trace.AppendBlock(frame, b)
		}
		info := segment.FrameInfo{Source: 2, Flags: segment.FlagMarked | c.flags}
		if err := errors.Join(s.Rotate(note("x"), segment.FrameInfo{Source: 1}), s.Append(frame, info),
			s.Close()); err != nil {
			t.Fatal(err)
		}
		vs, err := recording.CheckPath(dir)
		if err != nil || len(vs) != 1 || (vs[0].State == recording.Sound) != (c.why == "") ||
			!strings.Contains(vs[0].Why, c.why) {
			t.Errorf("%s: %+v %v", name, vs, err)
		}
	}
}

// TestCheck: each state with its places, and what salvage makes of it.
func TestCheck(t *testing.T) {
	second := int64(segment.HeaderSize + frameLen)
	for name, c := range map[string]struct {
		change func(b []byte) []byte
		state  recording.State
		at     []int64
		torn   int64
		frames int
		left   string // first letters of what salvage gives
	}{
		"sound": {func(b []byte) []byte { return b }, recording.Sound, nil, 0, 3, "abcdefghi"},
		"no index": {func(b []byte) []byte { return b[:segment.HeaderSize+3*frameLen] }, recording.Torn, nil,
			segment.HeaderSize + 3*frameLen, 3, "abcdefghi"},
		"an index byte": {func(b []byte) []byte { b[len(b)-40] ^= 1; return b }, recording.Corrupt,
			[]int64{segment.HeaderSize + 3*frameLen}, 0, 3, "abcdefghi"},
		"a version byte": {func(b []byte) []byte { b[8] ^= 1; return b }, recording.Corrupt, []int64{8}, 0, 0,
			"abcdefghi"},
		"torn": {func(b []byte) []byte { return b[:segment.HeaderSize+2*frameLen+70] }, recording.Torn, nil,
			int64(segment.HeaderSize + 2*frameLen), 2, "abcdeghi"},
		"torn index": {func(b []byte) []byte { return b[:len(b)-1] }, recording.Torn, nil,
			int64(segment.HeaderSize + 3*frameLen), 3, "abcdefghi"},
		"a payload byte": {func(b []byte) []byte { b[second+100] ^= 1; return b }, recording.Corrupt, []int64{second},
			0, 2, "abcdfghi"},
		"a header byte": {func(b []byte) []byte { b[second+10] ^= 1; return b }, recording.Corrupt, []int64{second},
			0, 2, "abcdfghi"},
		"the file header": {func(b []byte) []byte { b[20] ^= 1; return b }, recording.Corrupt, []int64{0}, 0, 0,
			"abcdefghi"},
		"too new": {func(b []byte) []byte { return future(b) }, recording.TooNew, nil, 0, 0, "abcghi"},
		"rubbish": {func(b []byte) []byte { return bytes.Repeat([]byte("x"), len(b)) }, recording.Corrupt,
			[]int64{0}, 0, 0, "abcghi"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := damaged(t, c.change)
			vs, err := recording.CheckPath(dir)
			if err != nil || len(vs) != 3 {
				t.Fatal(vs, err)
			}
			slices.SortFunc(vs, func(a, b recording.Verdict) int { return strings.Compare(a.File, b.File) })
			v := vs[1]
			if v.State != c.state || !slices.Equal(v.At, c.at) || v.TornAt != c.torn || v.Frames != c.frames ||
				vs[0].State != recording.Sound || vs[2].State != recording.Sound || recording.Worst(vs) != c.state {
				t.Errorf("%+v", vs)
			}
			var out bytes.Buffer
			m, _, err := pull.Salvage(context.Background(), dir, &out)
			if err != nil {
				t.Fatal(err)
			}
			p := filepath.Join(t.TempDir(), "x.heapcam")
			os.WriteFile(p, out.Bytes(), 0o600)
			got := ""
			for _, s := range strings.Split(texts(t, p), ",") {
				got += s[:1]
			}
			if got != c.left {
				t.Errorf("salvaged %s, want %s; %+v", got, c.left, m)
			}
			if vs, err := recording.CheckPath(p); err != nil || recording.Worst(vs) != recording.Sound {
				t.Errorf("what was salvaged is %v %v", vs, err)
			}
		})
	}
	if _, err := recording.CheckPath(filepath.Join(t.TempDir(), "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestSalvageHeadless salvages a single ring file whose header is damaged, whatever its name: each sound frame comes
// out once, in a container that is sound.
func TestSalvageHeadless(t *testing.T) {
	for _, name := range []string{"00000002.hcr", "copy.hcr"} {
		dir := damaged(t, func(b []byte) []byte {
			b[len(segment.Magic)+9] ^= 1
			return b
		})
		p := filepath.Join(t.TempDir(), name)
		if err := os.Rename(filepath.Join(dir, "00000002.hcr"), p); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		m, vs, err := pull.Salvage(context.Background(), p, &out)
		if err != nil || len(m.Files) != 1 || len(vs) != 1 {
			t.Fatalf("%s: %+v, %+v, %v", name, m, vs, err)
		}
		c := filepath.Join(t.TempDir(), "x.heapcam")
		os.WriteFile(c, out.Bytes(), 0o600)
		if vs, err := recording.CheckPath(c); err != nil || recording.Worst(vs) != recording.Sound || len(vs) != 1 {
			t.Errorf("%s: what was salvaged is %+v %v", name, vs, err)
		}
	}
}

// TestSalvageContainer cuts a container at every place: whole members come out, or an error that says that nothing is
// there.
func TestSalvageContainer(t *testing.T) {
	dir := damaged(t, func(b []byte) []byte { return b })
	var whole bytes.Buffer
	if _, err := pull.Pull(context.Background(), dir, &whole, pull.Options{}); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "x.heapcam")
	most := 0
	for cut := 0; cut < whole.Len(); cut += 113 {
		os.WriteFile(p, whole.Bytes()[:cut], 0o600)
		m, _, err := pull.Salvage(context.Background(), p, io.Discard)
		if err != nil {
			if !errors.Is(err, segment.ErrCorrupt) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		most = max(most, len(m.Files))
	}
	if most != 3 {
		t.Errorf("at most %d files were salvaged", most)
	}
}

// TestRedact: names of threads do not leave, all else does.
func TestRedact(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20}, folder.Identity{Session: session, Name: "secretname",
		Resource: trace.Resource{trace.AttrPod: "customer-4713"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Rotate(append(note("plain"), threads("main", "customer-4711")...),
		segment.FrameInfo{Source: 1, FirstGC: 3, LastGC: 4})
	s.Append(threads("customer-4712"), segment.FrameInfo{Source: 2})
	s.Append(trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Resource: trace.Resource{
		trace.AttrPod: "customer-4714"}})), segment.FrameInfo{Source: 3})
	s.Close()
	var out bytes.Buffer
	m, err := pull.Pull(context.Background(), dir, &out, pull.Options{Redact: true})
	if err != nil || !m.Redacted || m.Host != "" || m.Resource != nil || m.FirstGC != 3 || m.LastGC != 4 {
		t.Fatalf("%+v %v", m, err)
	}
	p := filepath.Join(t.TempDir(), "x.heapcam")
	os.WriteFile(p, out.Bytes(), 0o600)
	if vs, err := recording.CheckPath(p); err != nil || recording.Worst(vs) != recording.Sound {
		t.Error(vs, err)
	}
	rec, err := recording.Open(p)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	n := 0
	for b, err := range rec.Files[0].Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if bytes.Contains(b.Payload, []byte("customer")) || bytes.Contains(b.Payload, []byte("main")) {
			t.Errorf("a name has left: %q", b.Payload)
		}
	}
	if n != 4 {
		t.Errorf("%d blocks", n)
	}
}
