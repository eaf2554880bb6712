//go:build unix

package ringstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// TestGolden opens a recording of each released format, whole and file by file: it opens for ever. HEAPCAM_GOLDEN=vN
// writes a new one.
func TestGolden(t *testing.T) {
	if v := os.Getenv("HEAPCAM_GOLDEN"); v != "" {
		writeGolden(t, filepath.Join("testdata", v))
	}
	for v, want := range map[string][]string{
		"v1": {"head none,a none,b none", "head full,a full,b full"},
		"v2": {"head none,a none,b none", "head full,a full,b full"},
	} {
		dir := filepath.Join("testdata", v)
		if got := texts(t, dir); got != want[0]+","+want[1] {
			t.Errorf("%s: %s", v, got)
		}
		for i, name := range []string{"00000001.hcr", "00000002.hcr"} {
			if got := texts(t, filepath.Join(dir, name)); got != want[i] {
				t.Errorf("%s/%s: %s", v, name, got)
			}
		}
		// its recording.json has no checksum
		if vs, err := recording.CheckPath(dir); err != nil || len(vs) != 2 || recording.Worst(vs) != recording.Sound {
			t.Errorf("%s: %+v %v", v, vs, err)
		}
		// A recorder continues behind it, and leaves it as it is.
		work := filepath.Join(t.TempDir(), v)
		if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		s, rec, err := Open(Config{Dir: work, MaxTraceSize: 1 << 20}, folder.Identity{Session: session})
		if err != nil || rec.Torn != 0 || len(rec.Notes) != 0 || s.LastSource() != 130 {
			t.Fatalf("%s: %+v %v, source %d", v, rec, err, s.LastSource())
		}
		if err := s.Rotate(note("new"), segment.FrameInfo{Source: 140}); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if got := texts(t, work); got != want[0]+","+want[1]+",new" {
			t.Errorf("%s, gone on with: %s", v, got)
		}
		for _, name := range []string{"00000001.hcr", "00000002.hcr"} {
			a, _ := os.ReadFile(filepath.Join(dir, name))
			b, _ := os.ReadFile(filepath.Join(work, name))
			if string(a) != string(b) {
				t.Errorf("%s/%s was changed", v, name)
			}
		}
	}
}

func writeGolden(t *testing.T, to string) {
	dir := filepath.Join(t.TempDir(), "rec")
	for i, comp := range []string{"none", "full"} {
		s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20, Compression: comp,
			Now: func() time.Time { return time.Unix(1700000000, 0) }},
			folder.Identity{Session: session, Name: "golden", PID: 7, NSPID: 3, StartTicks: 99, VM: "17", Probe: "0"})
		if err != nil {
			t.Fatal(err)
		}
		b := uint64(100 * i)
		for j, text := range []string{"head ", "a ", "b "} {
			info := segment.FrameInfo{Source: b + 10*uint64(j+1), T0: b + uint64(2*j) + 1, T1: b + uint64(2*j) + 2}
			write := s.Append
			if j == 0 {
				write = s.Rotate
			} else {
				info.FirstGC, info.LastGC = b+uint64(j), b+uint64(j)
			}
			if err := write(note(text+comp), info); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
}
