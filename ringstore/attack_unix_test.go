//go:build unix

package ringstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/incident"
	"github.com/heapcam/heapcam/ringstore/recording"
	"github.com/heapcam/heapcam/ringstore/vfs"
	"golang.org/x/sys/unix"
)

// within fails if f does not end.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// TestTrapsInFolder puts what is no file where ring files and documents are: everybody who looks into the folder goes
// on, with the recording's own files.
func TestTrapsInFolder(t *testing.T) {
	traps := map[string]func(path string) error{
		"fifo":         func(p string) error { return unix.Mkfifo(p, 0o666) },
		"folder":       func(p string) error { return os.Mkdir(p, 0o700) },
		"link to self": func(p string) error { return os.Symlink(filepath.Base(p), p) },
		"link to the folder": func(p string) error {
			return os.Symlink(".", p)
		},
		"link to zeros":  func(p string) error { return os.Symlink("/dev/zero", p) },
		"link to a file": func(p string) error { return os.Symlink("/etc/passwd", p) },
		"link to a fifo": func(p string) error {
			return errors.Join(unix.Mkfifo(p+".f", 0o666),
				os.Symlink(p+".f", p))
		},
		"socket":            func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) },
		"link to nothing":   func(p string) error { return os.Symlink("/nowhere", p) },
		"file without read": func(p string) error { return os.WriteFile(p, nil, 0) },
	}
	if os.Getenv("HEAPCAM_FULL") == "" {
		for _, trap := range []string{"link to the folder", "link to nothing", "link to self", "socket",
			"file without read"} {
			delete(traps, trap)
		}
	}
	for trap, set := range traps {
		for _, name := range []string{"00000003.hcr", folder.RecordingName, folder.IncidentName, ".pull"} {
			t.Run(trap+" "+name, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "rec")
				ring(t, dir, session, "own", 2, 1000)
				os.Remove(filepath.Join(dir, name))
				os.Remove(filepath.Join(dir, name))
				if err := set(filepath.Join(dir, name)); err != nil {
					t.Skip(err)
				}
				within(t, "OpenRecording", func() {
					r, err := recording.Open(dir)
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					if len(r.Files) != 2 || r.Session != session {
						t.Errorf("%d files of session %s, %v", len(r.Files), r.Session, r.Problems)
					}
				})
				within(t, "CheckPath", func() { recording.CheckPath(dir) })
				within(t, "LookInto", func() { folder.LookInto(dir) })
				within(t, "OwnerOf", func() { folder.OwnerOf(dir) })
				within(t, "List", func() {
					n := &incident.Incidents{Dir: filepath.Dir(dir), Max: 1 << 20}
					n.List()
					n.Freeze(dir, incident.Asked, "because")
				})
				within(t, "Open", func() {
					s, _, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20},
						folder.Identity{Session: session, Name: "own"})
					if err == nil {
						s.Close()
					}
				})
				within(t, "RemoveRing", func() { folder.Remove(dir) })
				if trap == "link to a file" {
					if st, err := os.Stat("/etc/passwd"); err != nil || st.Size() == 0 {
						t.Fatal("what the link names was changed")
					}
				}
			})
		}
	}
}

// TestManyFiles: thousands of foreign files, and thousands that have one number, neither take a descriptor each for
// good, nor hide the recording.
func TestManyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	ring(t, dir, session, "own", 3, 1000)
	elsewhere := filepath.Join(t.TempDir(), "rec")
	ring(t, elsewhere, other, "foreign", 1, 2000)
	n := 600
	if os.Getenv("HEAPCAM_FULL") != "" {
		n = 6000
	}
	for i := range n {
		from := filepath.Join(elsewhere, "00000001.hcr")
		if i%2 == 1 {
			from = filepath.Join(dir, "00000002.hcr")
		}
		if err := os.Link(from, filepath.Join(dir, fmt.Sprintf("%08d.hcr", 100+i))); err != nil {
			t.Fatal(err)
		}
	}
	fds := func() int { l, _ := os.ReadDir("/proc/self/fd"); return len(l) }
	was := fds()
	begun := time.Now()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.Files) != 3 || len(r.Problems) != n || r.Session != session {
		t.Errorf("%d files, %d problems, session %s", len(r.Files), len(r.Problems), r.Session)
	}
	if now := fds(); now > was+10 {
		t.Errorf("%d descriptors more", now-was)
	}
	s, rec, err := Open(Config{Dir: dir, MaxTraceSize: 1 << 20}, folder.Identity{Session: session, Name: "own"})
	if err != nil || len(rec.Foreign) != n/2 {
		t.Fatalf("%d foreign files, %v", len(rec.Foreign), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files in %v", n, time.Since(begun).Round(time.Millisecond))
}

// TestHostileDocuments: what is no document of ours, however it is made, is damaged or believed, and never taken in
// part.
func TestHostileDocuments(t *testing.T) {
	whole, err := folder.EncodeDocument(map[string]any{"schema": "heapcam.recording/1", "session": session, "uid": 5})
	if err != nil {
		t.Fatal(err)
	}
	line := string(whole[len(whole)-checksumLine:])
	plain := `{"schema":"heapcam.recording/1","session":"` + session + `"`
	for name, c := range map[string]struct {
		doc string
		ok  bool
	}{
		"whole":         {string(whole), true},
		"none":          {plain + "}", true},
		"two checksums": {strings.TrimSuffix(string(whole), "\n}") + line, false},
		"before the last": {strings.Replace(string(whole), "\n  \"session\"",
			"\n  \"crc32c\": \"00000000\",\n  \"session\"", 1), false},
		"behind the end":    {string(whole) + "{}", false},
		"cut":               {string(whole[:len(whole)-3]), false},
		"upper case digits": {strings.ToUpper(string(whole)), false},
		"deep":              {strings.Repeat(`{"a":`, 200000) + "1" + strings.Repeat("}", 200000), false},
		"deep arrays": {plain + `,"x":` + strings.Repeat("[", 200000) + strings.Repeat("]", 200000) + "}",
			false},
		"huge number":        {plain + `,"uid":1e999999}`, false},
		"number of a user":   {plain + `,"uid":18446744073709551616}`, false},
		"version":            {`{"schema":"heapcam.recording/99999999999999999999"}`, false},
		"version 0":          {`{"schema":"heapcam.recording/0"}`, false},
		"text for a session": {`{"schema":"heapcam.recording/1","session":["a"]}`, false},
		"array":              {`[]`, false},
		"null":               {`null`, false},
		"empty":              {``, false},
		"bytes":              {"\xff\xfe{}", false},
	} {
		path := filepath.Join(t.TempDir(), folder.RecordingName)
		if err := os.WriteFile(path, []byte(c.doc), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err1 := folder.OwnerOf(filepath.Dir(path))
		entries, _ := vfs.OS.ReadDir(filepath.Dir(path))
		_, problems := folder.DescribedSession(vfs.OS, filepath.Dir(path), entries)
		if ok := err1 == nil && len(problems) == 0; ok != c.ok && !(strings.Contains(name, "number") && err1 != nil) {
			t.Errorf("%s: %v, %v", name, err1, problems)
		}
	}
}
