//go:build unix

package ringstore

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// flips are what is done to each byte: a few bits, or with HEAPCAM_FULL whatever it may become.
func flips(few ...byte) []byte {
	if os.Getenv("HEAPCAM_FULL") == "" {
		return few
	}
	var all []byte
	for i := 1; i < 256; i++ {
		all = append(all, byte(i))
	}
	return all
}

// small makes a recording of two files of three frames each; open leaves the second one as a recorder that was killed
// does.
func small(t *testing.T, open bool) (dir string) {
	dir = filepath.Join(t.TempDir(), "rec")
	s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20, Now: func() time.Time { return time.Unix(1e9, 0) }},
		folder.Identity{Session: session, Name: "small"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(6) {
		put := s.Append
		if i%3 == 0 {
			put = s.Rotate
		}
		if err := put(note(fmt.Sprint("frame ", i)),
			segment.FrameInfo{Source: i + 1, FirstGC: i + 1, LastGC: i + 1, T0: 10*i + 1, T1: 10*i + 9}); err != nil {
			t.Fatal(err)
		}
	}
	if open {
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		s.abandon()
	} else if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// contents gives what a reader gets of a file, and how often it was given damage.
func contents(f *segment.File) (out string, damage int) {
	for fr, err := range f.Frames() {
		if err != nil {
			damage++
			continue
		}
		out += fmt.Sprintf("%x %d;", fr.Payload, fr.FirstGC)
	}
	return out, damage
}

// TestEveryByteIsVerified flips each byte of a ring file, closed, not closed, and of the format before, and cuts the
// file there: verify says that it is not what was written, and no reader gets a frame that was not written.
func TestEveryByteIsVerified(t *testing.T) {
	read := func(dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	open, closed := small(t, true), small(t, false)
	for name, whole := range map[string][]byte{
		"closed":     read(closed, "00000002.hcr"),
		"not closed": read(open, "00000002.hcr"),
		"version 1":  read(filepath.Join("testdata", "v1"), "00000001.hcr"),
		"version 2":  read(filepath.Join("testdata", "v2"), "00000002.hcr"),
	} {
		t.Run(name, func(t *testing.T) {
			check := func(b []byte) (v recording.Verdict, got string, damage int, x bool) {
				f, err := segment.NewFile("x", bytes.NewReader(b), int64(len(b)))
				if err != nil {
					return recording.VerdictOf("x", err), "", 1, false
				}
				got, damage = contents(f)
				return recording.CheckFile(f), got, damage, f.Sealed()
			}
			sound, want, _, hadIndex := check(whole)
			if sound.State != recording.Sound || sound.Closed != hadIndex || sound.Frames != 3 {
				t.Fatalf("%+v", sound)
			}
			indexAt := len(whole)
			if hadIndex {
				indexAt -= int(segment.IndexSize(3))
			}
			for at := range whole {
				for _, x := range flips(0x01, 0x80, 0xff, 0x41) {
					bad := bytes.Clone(whole)
					bad[at] ^= x
					v, got, damage, _ := check(bad)
					if v.State != recording.Corrupt || v.Corrupt != 1 || len(v.At) != 1 || damage != 1 {
						t.Fatalf("byte %d flipped by %#x: %+v, readers got %d damaged sections", at, x, v, damage)
					}
					if at >= indexAt && got != want {
						t.Fatalf("byte %d of the index flipped by %#x: readers get other frames", at, x)
					}
				}
				v, got, _, _ := check(whole[:at])
				if v.State == recording.Corrupt || v.State == recording.TooNew ||
					v.State == recording.Sound && v.Closed {
					t.Fatalf("cut at %d: %+v", at, v)
				}
				if v.State == recording.Sound && int64(at) != v.Bytes || len(got) > len(want) ||
					got != want[:len(got)] {
					t.Fatalf("cut at %d: readers get other frames", at)
				}
			}
			// What a machine that lost its power had not written yet reads as zeros.
			if v, _, _, _ := check(append(bytes.Clone(whole[:indexAt]),
				make([]byte, 5000)...)); v.State != recording.Torn || v.TornAt != int64(indexAt) {
				t.Errorf("zeros behind the last frame: %+v", v)
			}
			garbage := append(bytes.Clone(whole[:indexAt]), make([]byte, 5000)...)
			garbage[indexAt+700] = 1
			if v, _, _, _ := check(garbage); v.State != recording.Corrupt {
				t.Errorf("something between zeros behind the last frame: %+v", v)
			}
		})
	}
}

// TestEveryByteBeside flips each byte of the documents beside ring files, and cuts them off there: verify says which
// one is not what was written.
func TestEveryByteBeside(t *testing.T) {
	ring := small(t, false)
	inc := &incident.Incidents{Dir: filepath.Join(t.TempDir(), "incidents"), Max: 1 << 20}
	i, err := inc.Freeze(ring, incident.Asked, "a reason")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{filepath.Join(ring, folder.RecordingName),
		filepath.Join(inc.Path(i.ID), folder.IncidentName)} {
		dir := filepath.Dir(p)
		if vs, err := recording.CheckPath(dir); err != nil || recording.Worst(vs) != recording.Sound {
			t.Fatal(vs, err)
		}
		whole, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, b []byte) {
			t.Helper()
			if err := anew(p, b); err != nil {
				t.Fatal(err)
			}
			vs, err := recording.CheckPath(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range vs {
				if v.File == p && v.State == recording.Corrupt {
					return
				}
			}
			t.Fatalf("%s, %s: %+v", filepath.Base(p), what, vs)
		}
		for at := range whole {
			for _, x := range flips(0x01, 0xff) {
				bad := bytes.Clone(whole)
				bad[at] ^= x
				check(fmt.Sprintf("byte %d flipped by %#x", at, x), bad)
			}
			check(fmt.Sprintf("cut at %d", at), whole[:at])
		}
		if err := anew(p, whole); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryByteOfAContainer flips each byte of a pulled recording, and cuts it off there: verify says so, and what is
// read of it is what was pulled.
func TestEveryByteOfAContainer(t *testing.T) {
	var out bytes.Buffer
	if _, err := pull.Pull(context.Background(), small(t, false), &out, pull.Options{}); err != nil {
		t.Fatal(err)
	}
	whole, p := out.Bytes(), filepath.Join(t.TempDir(), "x.heapcam")
	check := func(b []byte) recording.State {
		if err := anew(p, b); err != nil {
			t.Fatal(err)
		}
		vs, err := recording.CheckPath(p)
		if err != nil {
			t.Fatal(err)
		}
		return recording.Worst(vs)
	}
	if w := check(whole); w != recording.Sound {
		t.Fatal(w)
	}
	for at := range whole {
		for _, x := range flips(0x10) { // of '0' it makes a blank, which numbers of a tar file may have
			bad := bytes.Clone(whole)
			bad[at] ^= x
			if w := check(bad); w != recording.Corrupt {
				t.Errorf("byte %d (%#x) flipped by %#x: %s", at, whole[at], x, w)
			}
		}
		if at%7 == 0 || at%512 == 0 || at > len(whole)-600 {
			if w := check(whole[:at]); w == recording.Sound || w == recording.TooNew {
				t.Errorf("cut at %d of %d: %s", at, len(whole), w)
			}
		}
		if t.Failed() && at > 2000 {
			t.FailNow()
		}
	}
}
