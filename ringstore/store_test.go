//go:build unix

package ringstore

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/trace"
	"pgregory.net/rapid"
)

var session = strings.Repeat("ab", 16)

func note(text string) []byte {
	return trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Text: text}}}))
}

func random(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func onDisk(t testing.TB, dir string) int64 {
	var n int64
	err := filepath.Walk(dir, func(p string, st os.FileInfo, err error) error {
		if err == nil {
			n += st.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLimit: whatever is written, the disk never holds more than M(1+d), and after the first fill M(1−d) stays while
// heads are small.
func TestLimit(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := rapid.Int64Range(1<<18, 1<<19).Draw(rt, "M")
		d := rapid.SampledFrom([]float64{0.5, 0.25, 0.1}).Draw(rt, "d")
		headMax := rapid.IntRange(1, int(m)/4).Draw(rt, "head")
		frameMax := rapid.IntRange(1, 40000).Draw(rt, "frame")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		dir, err := os.MkdirTemp(t.TempDir(), "r")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		dir = filepath.Join(dir, "rec")
		s, _, err := Open(Config{Dir: dir, MaxTraceSize: m, Deviation: d, Compression: "none"},
			folder.Identity{Session: session})
		if err != nil {
			rt.Fatal(err)
		}
		defer s.Close()
		if err := s.Rotate(random(r, 100), segment.FrameInfo{Source: 1}); err != nil {
			rt.Fatal(err)
		}
		limit := int64(float64(m) * (1 + d))
		filled := false
		for i := range 120 {
			st := s.Stats()
			if st.Rotate {
				err = s.Rotate(random(r, 1+r.IntN(headMax)), segment.FrameInfo{Source: uint64(i)})
			} else {
				err = s.Append(random(r, 1+r.IntN(frameMax)), segment.FrameInfo{Source: uint64(i)})
			}
			if err != nil && !errors.Is(err, quota.ErrNoRoom) {
				rt.Fatal(err)
			}
			got := onDisk(t, dir)
			if got > limit {
				rt.Fatalf("step %d: %d bytes on disk, limit %d", i, got, limit)
			}
			if err == nil && got > s.Stats().Bytes {
				rt.Fatalf("step %d: %d bytes on disk, the store counts %d", i, got, s.Stats().Bytes)
			}
			filled = filled || s.Stats().Bytes >= m
			if filled && float64(4*headMax+2*frameMax+8192) <= d*float64(m) &&
				s.Stats().Bytes < int64(float64(m)*(1-d)) {
				rt.Fatalf("step %d: %d bytes are left of %d", i, s.Stats().Bytes, m)
			}
		}
	})
}

func TestReadBackResumeAndPull(t *testing.T) {
	for _, comp := range []string{"none", "full"} {
		dir := filepath.Join(t.TempDir(), "rec")
		cfg := Config{Dir: dir, MaxTraceSize: 1 << 20, Compression: comp}
		s, _, err := Open(cfg, folder.Identity{Session: session, Name: "x", PID: 7})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(note("early"), segment.FrameInfo{}); !errors.Is(err, ErrNoFile) {
			t.Errorf("append without a file: %v", err)
		}
		s.Rotate(note("head 1"), segment.FrameInfo{Source: 10})
		s.Append(note("a"), segment.FrameInfo{Source: 20, FirstGC: 1, LastGC: 2})
		s.Rotate(note("head 2"), segment.FrameInfo{Source: 30, FirstGC: 2, LastGC: 2})
		s.Append(note("b"), segment.FrameInfo{Source: 40, FirstGC: 3, LastGC: 3})
		s.Close()
		// A write that a kill cut off.
		path := filepath.Join(dir, "00000002.hcr")
		whole, _ := os.ReadFile(path)
		whole = whole[:int64(len(whole))-segment.IndexSize(2)]
		os.WriteFile(path, append(bytes.Clone(whole), whole[len(whole)-70:]...), 0o600)
		s, rec, err := Open(cfg, folder.Identity{Session: session})
		if err != nil || !rec.Resumed || rec.Torn != 70 || s.LastSource() != 40 {
			t.Fatalf("resume: %+v %v, source %d", rec, err, s.LastSource())
		}
		s.Append(note("c"), segment.FrameInfo{Source: 50, FirstGC: 4, LastGC: 4})
		if _, _, err := Open(cfg, folder.Identity{Session: strings.Repeat("cd", 16)}); !errors.Is(err,
			ErrOtherRecording) {
			t.Errorf("another session: %v", err)
		}
		var out bytes.Buffer
		m, err := pull.Pull(context.Background(), dir, &out, pull.Options{})
		if err != nil || len(m.Files) != 2 || m.FirstGC != 1 || m.LastGC != 4 {
			t.Fatalf("pull: %+v %v", m, err)
		}
		s.Close()
		container := filepath.Join(t.TempDir(), "x.heapcam")
		os.WriteFile(container, out.Bytes(), 0o600)
		for _, p := range []string{dir, container} {
			if got := texts(t, p); got != "head 1,a,head 2,b,c" {
				t.Errorf("%s: %s", p, got)
			}
		}
		if got := texts(t, path); got != "head 2,b,c" {
			t.Errorf("single file: %s", got)
		}
		for cut := 0; cut < out.Len()-2048; cut += 97 { // behind the manifest are its padding and two empty records
			os.WriteFile(container, out.Bytes()[:cut], 0o600)
			r, err := recording.Open(container)
			if err != nil {
				if cut > 2048 {
					t.Fatalf("cut at %d of %d: %v", cut, out.Len(), err)
				}
				continue
			}
			var d *segment.DamageError
			if len(r.Problems) == 0 || !errors.As(r.Problems[len(r.Problems)-1], &d) ||
				!errors.Is(d.Err, segment.ErrTorn) {
				t.Fatalf("cut at %d of %d: %v", cut, out.Len(), r.Problems)
			}
			for _, v := range r.Check() {
				if v.State == recording.Corrupt {
					t.Fatalf("cut at %d of %d: %+v", cut, out.Len(), v)
				}
			}
			r.Close()
		}
	}
}

func texts(t *testing.T, path string) string {
	t.Helper()
	r, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []string
	for _, f := range r.Files {
		for b, err := range f.Blocks() {
			if err != nil {
				t.Fatal(err)
			}
			m, err := trace.DecodeMeta(b)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, m.Notes[0].Text)
		}
	}
	return strings.Join(out, ",")
}

// TestEveryByte cuts a file at every byte and flips every byte: never a panic, never a wrong frame, later frames are
// found again.
func TestEveryByte(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	s, _, err := Open(Config{Dir: dir}, folder.Identity{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	s.Rotate(note("one"), segment.FrameInfo{Source: 1})
	s.Append(note("two, which is a little longer than the others, and repeats, and repeats, and repeats"),
		segment.FrameInfo{Source: 2})
	s.Append(note("three"), segment.FrameInfo{Source: 3})
	s.Close()
	whole, err := os.ReadFile(filepath.Join(dir, "00000001.hcr"))
	if err != nil {
		t.Fatal(err)
	}
	var want [][]byte
	read := func(b []byte) (got [][]byte, damage int, err error) {
		f, err := segment.NewFile("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return nil, 0, err
		}
		for fr, err := range f.Frames() {
			var d *segment.DamageError
			switch {
			case errors.As(err, &d):
				damage++
			case err != nil:
				t.Fatal(err)
			default:
				got = append(got, bytes.Clone(fr.Payload))
			}
		}
		return got, damage, nil
	}
	want, damage, err := read(whole)
	if err != nil || damage != 0 || len(want) != 3 {
		t.Fatal(want, damage, err)
	}
	data := len(whole) - int(segment.IndexSize(3))
	for n := range whole {
		got, damage, err := read(whole[:n])
		// A cut between two frames is not seen; frames stay sound when the index is gone.
		if err == nil && (damage == 0 && n != segment.HeaderSize && len(got) == 0 || len(got) == 3 && n < data ||
			n > data && (len(got) != 3 || damage != 1)) {
			t.Fatalf("cut at %d: %d frames, %d damages", n, len(got), damage)
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("cut at %d: frame %d differs", n, i)
			}
		}
		bad := bytes.Clone(whole)
		bad[n] ^= 0x41
		got, damage, err = read(bad)
		left := 2
		if n >= data {
			left = 3
		}
		if err == nil && (damage != 1 || len(got) != left) {
			t.Fatalf("byte %d flipped: %d frames, %d damages", n, len(got), damage)
		}
		for _, g := range got {
			if !bytes.Equal(g, want[0]) && !bytes.Equal(g, want[1]) && !bytes.Equal(g, want[2]) {
				t.Fatalf("byte %d flipped: a wrong frame", n)
			}
		}
	}
	var tooNew *segment.TooNewError
	if _, _, err := read(future(bytes.Clone(whole))); !errors.As(err, &tooNew) {
		t.Errorf("a future version: %v", err)
	}
}

func FuzzFile(f *testing.F) {
	h := segment.Header{Number: 1, Session: session}
	f.Add(h.Encode())
	f.Add(append(h.Encode(), "HCFR"...))
	p, err := segment.NewPacker(segment.Full, 0, 0)
	if err != nil {
		f.Fatal(err)
	}
	all := h.Encode()
	for i, flags := range []uint16{0, segment.FlagListed, 0, segment.FlagListed} { // the first frame is no listing's
		kind := trace.KindRefs
		if flags |= segment.FlagMarked | segment.FlagApart | segment.FlagReferences; i == 0 {
			kind, flags = trace.KindMeta, flags&^segment.FlagReferences
		}
		all = p.Frame(all, trace.AppendBlock(nil, trace.Block{Kind: kind, Version: 1, Payload: make([]byte, 9)}),
			segment.FrameInfo{Source: uint64(i + 1), Flags: flags})
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := segment.NewFile("x", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, blocks := range []iter.Seq2[trace.Block, error]{file.Blocks(), file.BlocksWithoutReferences(),
			file.BlocksWithoutTokens(), file.References(), file.ReferenceEnds(), file.Pauses(), file.Definitions(),
			file.Summaries(), file.From(2)} {
			for _, err := range blocks {
				_ = err
			}
		}
		recording.CheckFile(file)
	})
}

func threads(names ...string) []byte {
	var d trace.Defs
	for i, n := range names {
		d.Threads = append(d.Threads, trace.Thread{ID: uint64(i + 1), Name: n})
	}
	return trace.AppendBlock(nil, trace.EncodeDefs(d))
}

// TestFilesAreNotSmall demands that files are not begun one after the other because the total is at M: each costs
// a listing.
func TestFilesAreNotSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, frame := range []int{3000, 17000, 29000} {
		dir := filepath.Join(t.TempDir(), "rec")
		s, _, err := Open(Config{Dir: dir, MaxTraceSize: 4 << 20, Deviation: 0.25, Compression: "none"},
			folder.Identity{Session: session})
		if err != nil {
			t.Fatal(err)
		}
		begun, at := 0, uint64(1)
		for written := 0; written < 40<<20; at++ {
			if s.Stats().Rotate {
				err = s.Rotate(random(r, 20000), segment.FrameInfo{Source: at, Flags: segment.FlagListing})
				begun++
			} else {
				n := frame/2 + r.IntN(frame)
				err = s.Append(random(r, n), segment.FrameInfo{Source: at})
				written += n
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if begun > 2*40 {
			t.Errorf("frames of %d bytes: %d files for 40 MiB, of 1 MiB each if all goes well", frame, begun)
		}
		s.Close()
	}
}

// checksumLine is the length of a document's last line, which holds its checksum.
const checksumLine = len(",\n  \"crc32c\": \"") + 8 + len("\"\n}")
