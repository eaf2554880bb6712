//go:build unix

package ringstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/segment"
	"github.com/heapcam/heapcam/ringstore/vfs"
)

var other = strings.Repeat("cd", 16)

// ring makes a recording of session s of n files that hold one note each, NAME1, NAME2 …, begun at so many seconds.
func ring(t *testing.T, dir, s, name string, n int, at int64) {
	t.Helper()
	st, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20, Now: func() time.Time { return time.Unix(at, 0) }},
		folder.Identity{Session: s, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(n) {
		if err := st.Rotate(note(fmt.Sprint(name, i+1)),
			segment.FrameInfo{Source: i + 1, FirstGC: i + 1, LastGC: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func verdictOf(t *testing.T, path, file string) recording.Verdict {
	t.Helper()
	vs, err := recording.CheckPath(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if strings.HasSuffix(v.File, file) {
			return v
		}
	}
	return recording.Verdict{}
}

// TestForeignFiles: a file of another recording is named with both sessions, and nobody reads, moves, counts or removes
// it.
func TestForeignFiles(t *testing.T) {
	dir, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	ring(t, dir, session, "a", 3, 1000)
	ring(t, b, other, "b", 3, 2000)
	alien := filepath.Join(dir, "00000009.hcr")
	copyFile(t, filepath.Join(b, "00000002.hcr"), alien)
	named := func(what, s string) {
		t.Helper()
		if !strings.Contains(s, "00000009.hcr") || !strings.Contains(s, session[:8]) ||
			!strings.Contains(s, other[:8]) {
			t.Errorf("%s does not name the file and both sessions: %s", what, s)
		}
	}

	v := verdictOf(t, dir, "00000009.hcr")
	if v.State != "foreign" {
		t.Errorf("verify: %+v", v)
	}
	named("verify", v.Why)
	if got := texts(t, dir); got != "a1,a2,a3" {
		t.Errorf("readers get %s", got)
	}
	rec, err := recording.Open(dir)
	if err != nil || len(rec.Problems) != 1 {
		t.Fatal(rec, err)
	}
	named("OpenRecording", rec.Problems[0].Error())
	rec.Close()

	p := filepath.Join(t.TempDir(), "x.heapcam")
	pulled, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := pull.Pull(context.Background(), dir, pulled, pull.Options{})
	pulled.Close()
	if err != nil || m.Session != session || len(m.Files) != 3 {
		t.Errorf("pull: %+v %v", m, err)
	}
	if got := texts(t, p); got != "a1,a2,a3" {
		t.Errorf("pulled: %s", got)
	}
	if got := fmt.Sprint(m.Foreign); !strings.Contains(got, "00000009.hcr") || !strings.Contains(got, other) {
		t.Errorf("the manifest names %s", got)
	}

	inc := &incident.Incidents{Dir: filepath.Join(t.TempDir(), "incidents"), Max: 1 << 20}
	i, err := inc.Freeze(dir, incident.Asked, "x")
	if err != nil || i.Session != session || i.Files != 3 || fmt.Sprint(i.Foreign) != "[00000009.hcr]" {
		t.Errorf("incident: %+v %v", i, err)
	}
	if got := texts(t, inc.Path(i.ID)); got != "a1,a2,a3" {
		t.Errorf("incident: %s", got)
	}
	if vs, err := recording.CheckPath(inc.Path(i.ID)); err != nil || recording.Worst(vs) != recording.Sound {
		t.Errorf("incident: %v %v", vs, err)
	}

	var out bytes.Buffer
	if _, vs, err := pull.Salvage(context.Background(), dir, &out); err != nil || recording.Worst(vs) != "foreign" {
		t.Errorf("salvage: %v %v", vs, err)
	}
	os.WriteFile(p, out.Bytes(), 0o600)
	if got := texts(t, p); got != "a1,a2,a3" {
		t.Errorf("salvaged: %s", got)
	}

	before, _ := os.ReadFile(alien)
	if _, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20},
		folder.Identity{Session: other, Name: "b"}); !errors.Is(err, ErrOtherRecording) {
		t.Errorf("a recorder of the other one goes on here: %v", err)
	}
	s, got, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 18, Deviation: 0.5},
		folder.Identity{Session: session, Name: "a"})
	if err != nil || len(got.Foreign) != 1 || got.Files != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	named("recovery", got.Foreign[0].Error())
	was := s.Stats()
	if was.Files != 3 || was.Bytes != overhead+3*vfs.Block || s.LastSource() != 3 {
		t.Errorf("it is counted: %+v, source %d", was, s.LastSource())
	}
	big := bytes.Repeat(note("x"), 2000)
	for n := uint64(4); n < 60; n++ { // over its name, and till the first ones are evicted
		if err := s.Rotate(big, segment.FrameInfo{Source: n, Flags: segment.FlagMarked}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Stats().Evicted == 0 {
		t.Error("nothing was evicted")
	}
	s.Close()
	after, err := os.ReadFile(alien)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the recorder changed it: %v", err)
	}

	var foreign *folder.ForeignError
	if err := folder.Remove(dir); !errors.As(err, &foreign) {
		t.Errorf("%v", err)
	}
	if after, err = os.ReadFile(alien); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it went with the ring: %v", err)
	}
	if own, _ := filepath.Glob(filepath.Join(dir, "*.hcr")); len(own) != 1 {
		t.Errorf("left: %v", own)
	}
	if err := folder.Remove(dir); !errors.As(err, &foreign) {
		t.Errorf("once more: %v", err)
	}
	if _, err := os.Stat(alien); err != nil {
		t.Errorf("what is left is taken for the ring's own: %v", err)
	}
}

// TestWhoseRecording is the rule: what the folder says, else most files, else the newest.
func TestWhoseRecording(t *testing.T) {
	for name, c := range map[string]struct {
		a, b      int // files of each
		said      string
		atA, atB  int64
		want      string
		noForeign bool
	}{
		"it says so, against the number":  {a: 1, b: 3, said: session, atA: 1, atB: 2, want: "a1"},
		"it says nothing: most":           {a: 3, b: 1, atA: 1, atB: 2, want: "a1,a2,a3"},
		"it says nothing, as many: newer": {a: 2, b: 2, atA: 1, atB: 2, want: "b1,b2"},
		"as many, the other way round":    {a: 2, b: 2, atA: 2, atB: 1, want: "a1,a2"},
		"it says what is not there":       {a: 1, b: 2, said: strings.Repeat("ef", 16), want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			tmp, dir := t.TempDir(), filepath.Join(t.TempDir(), "rec")
			os.Mkdir(dir, 0o700)
			for i, r := range []struct {
				s, name string
				n       int
				at      int64
			}{{session, "a", c.a, c.atA}, {other, "b", c.b, c.atB}} {
				from := filepath.Join(tmp, r.name)
				ring(t, from, r.s, r.name, r.n, r.at)
				for k := range r.n { // numbers that do not meet
					b, err := os.ReadFile(filepath.Join(from, fmt.Sprintf("%08d.hcr", k+1)))
					if err == nil {
						err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%08d.hcr", 10*i+k+1)), b, 0o600)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.said != "" {
				b, _ := folder.Describe(folder.Identity{Session: c.said}, nil)
				os.WriteFile(filepath.Join(dir, folder.RecordingName), b, 0o600)
			}
			vs, err := recording.CheckPath(dir)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, v := range vs {
				if v.State == "foreign" {
					n++
				}
			}
			if n == 0 {
				t.Errorf("%+v", vs)
			}
			r, err := recording.Open(dir)
			var foreign *folder.ForeignError
			if c.want == "" {
				if !errors.As(err, &foreign) {
					t.Errorf("%v %v", r, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			if got := texts(t, dir); got != c.want {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestPlaces: files of the same recording that are under another number, twice, or not at all.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(dir string)
		file  string // of which verify says
		state recording.State
		want  string
		worst recording.State
	}{
		"a copy under another number": {func(d string) { copyFile(t, d+"/00000002.hcr", d+"/00000009.hcr") },
			"00000009.hcr", "misplaced", "a1,a2,a3,a4", "misplaced"},
		"renamed": {func(d string) { os.Rename(d+"/00000002.hcr", d+"/00000009.hcr") },
			"00000009.hcr", "misplaced", "a1,a2,a3,a4", "misplaced"},
		"two that changed places": {func(d string) {
			os.Rename(d+"/00000002.hcr", d+"/x")
			os.Rename(d+"/00000003.hcr", d+"/00000002.hcr")
			os.Rename(d+"/x", d+"/00000003.hcr")
		}, "00000003.hcr", "misplaced", "a1,a2,a3,a4", "misplaced"},
		"one is not there": {func(d string) { os.Remove(d + "/00000002.hcr") }, "00000002.hcr", "missing", "a1,a3,a4",
			recording.Sound},
		"the index of another one": {func(d string) {
			from, _ := os.ReadFile(d + "/00000003.hcr")
			to, _ := os.ReadFile(d + "/00000002.hcr")
			n := len(to) - int(segment.IndexSize(1))
			os.WriteFile(d+"/00000002.hcr", append(to[:n:n], from[n:]...), 0o600)
		}, "00000002.hcr", recording.Corrupt, "a1,a2,a3,a4", recording.Corrupt},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "rec")
			ring(t, dir, session, "a", 4, 1000)
			c.do(dir)
			if v := verdictOf(t, dir, c.file); v.State != c.state {
				t.Errorf("%+v", v)
			}
			if vs, err := recording.CheckPath(dir); err != nil || recording.Worst(vs) != c.worst {
				t.Errorf("%v %v", vs, err)
			}
			r, err := recording.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range r.Files {
				for fr, err := range f.Frames() {
					if err == nil {
						got += "," + string(regexp.MustCompile("a[0-9]").Find(fr.Payload))
					}
				}
			}
			r.Close()
			if len(got) > 0 && got[1:] != c.want {
				t.Errorf("readers get %s, want %s", got, c.want)
			}
			s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20}, folder.Identity{Session: session})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Rotate(note("a9"), segment.FrameInfo{Source: 9}); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if r, err = recording.Open(dir); err != nil {
				t.Fatal(err)
			}
			if last := r.Files[len(r.Files)-1]; last.Index < 5 || len(r.Files) != strings.Count(c.want, ",")+2 {
				t.Errorf("gone on with number %d, %d files", last.Index, len(r.Files))
			}
			r.Close()
		})
	}
}

// TestCopyOfOpenFile: the copy of a file that was being written to is not what a recorder continues.
func TestCopyOfOpenFile(t *testing.T) {
	dir := small(t, true)
	copyFile(t, filepath.Join(dir, "00000002.hcr"), filepath.Join(dir, "00000005.hcr"))
	s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20}, folder.Identity{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Append(note("more"), segment.FrameInfo{Source: 9}); err == nil {
		t.Error("it goes on with a copy")
	}
	if err := s.Rotate(note("more"), segment.FrameInfo{Source: 9}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := texts(t, dir); got != "frame 0,frame 1,frame 2,frame 3,frame 4,frame 5,more" {
		t.Error(got)
	}
}

// TestForeignOutlivesRing: where nothing but the number of files showed whose the folder is, that is still so when
// the ring has been removed.
func TestForeignOutlivesRing(t *testing.T) {
	dir, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	ring(t, dir, session, "a", 3, 1000)
	ring(t, b, other, "b", 3, 2000)
	alien := filepath.Join(dir, "00000009.hcr")
	copyFile(t, filepath.Join(b, "00000002.hcr"), alien)
	os.Remove(filepath.Join(dir, folder.RecordingName))
	for range 2 {
		var foreign *folder.ForeignError
		if err := folder.Remove(dir); !errors.As(err, &foreign) || foreign.Own != session {
			t.Errorf("%v", err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.hcr")); len(left) != 1 || left[0] != alien {
		t.Errorf("left: %v", left)
	}
}

// TestImportCut demands that a container which is cut off, or still being written, is torn wherever it ends: whoever
// takes it in tries again.
func TestImportCut(t *testing.T) {
	var out bytes.Buffer
	dir := filepath.Join(t.TempDir(), "rec")
	ring(t, dir, "00112233445566778899aabbccddeeff", "a", 3, 1)
	if _, err := pull.Pull(context.Background(), dir, &out, pull.Options{}); err != nil {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), "x.heapcam")
	for cut := out.Len() - 513; cut > 1024; cut -= 211 { // behind that the manifest's end may be all that is left out
		if err := anew(p, out.Bytes()[:cut]); err != nil {
			t.Fatal(err)
		}
		in, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		_, err = pull.Import(context.Background(), []*os.File{in}, filepath.Join(t.TempDir(), "d"), 0, -1)
		in.Close()
		if !errors.Is(err, segment.ErrTorn) {
			t.Fatalf("cut at %d of %d: %v", cut, out.Len(), err)
		}
	}
}
