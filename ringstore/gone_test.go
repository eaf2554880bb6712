//go:build unix

package ringstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heapcam/heapcam/ringstore/segment"
)

// TestFolderRemoved: a store whose folder is removed or moved, or whose file is cut, says so within a second and begins
// anew.
func TestFolderRemoved(t *testing.T) {
	for name, harm := range map[string]func(dir string) error{
		"removed": func(dir string) error { return os.RemoveAll(filepath.Dir(dir)) },
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-aside") },
		"cut": func(dir string) error {
			return os.Truncate(filepath.Join(dir, "00000001"+segment.Suffix), 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out", "ring")
			now := time.Unix(1e9, 0)
			s, _, err := Open(Config{Dir: dir, Now: func() time.Time { return now }},
				Identity{Session: session, PID: 1, Name: "app"})
			if err != nil {
				t.Fatal(err)
			}
			head := func() {
				t.Helper()
				if err := s.Rotate(note("head"), segment.FrameInfo{}); err != nil {
					t.Fatal(err)
				}
			}
			head()
			if st := s.Stats(); st.Rotate || st.Gone != 0 {
				t.Fatalf("before: %+v", st)
			}
			if err := harm(dir); err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * time.Second)
			if err := s.Append(note("lost"), segment.FrameInfo{}); !errors.Is(err, ErrNoFile) {
				t.Fatalf("append: %v, want ErrNoFile", err)
			}
			if st := s.Stats(); !st.Rotate || st.Gone != 1 {
				t.Fatalf("after: rotate %v, gone %d", st.Rotate, st.Gone)
			}
			head()
			if err := s.Append(note("kept"), segment.FrameInfo{}); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenFile(filepath.Join(dir, "00000002"+segment.Suffix)); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, RecordingName)); err != nil {
				t.Error(err)
			}
			if st := s.Stats(); st.Gone != 1 {
				t.Errorf("gone %d at the end", st.Gone)
			}
		})
	}
}
