package spool

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/agent/quota"
	"github.com/heapcam/heapcam/ringstore"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

func config(t *testing.T) Config {
	dir := t.TempDir()
	c := Config{
		Dir: filepath.Join(dir, "spool"), Out: filepath.Join(dir, "out"),
		Disk: quota.NewDisk(quota.DiskConfig{Out: filepath.Join(dir, "out"), Ring: 1 << 30}), Log: zerolog.Nop(),
		Record: func(context.Context, string, func() (*shmring.Ring, error)) error { return nil },
		Forget: func(func(string) bool) {},
	}
	if err := errors.Join(os.Mkdir(c.Dir, 0o777), os.Mkdir(c.Out, 0o700)); err != nil {
		t.Fatal(err)
	}
	return c
}

// record makes a ring folder.
func record(t *testing.T, dir string) {
	t.Helper()
	st, _, err := ringstore.Open(ringstore.Config{Dir: dir, MaxTraceSize: 8 << 20, Compression: "none"},
		ringstore.Identity{Session: strings.Repeat("ab", 16), Name: "Shop", PID: 7})
	if err != nil {
		t.Fatal(err)
	}
	head := trace.AppendBlock(nil, trace.EncodeMeta(trace.Meta{Notes: []trace.Note{{Text: "x"}}}))
	if err := errors.Join(st.Rotate(head, ringstore.FrameInfo{Source: 1}), st.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestSpool drops a recording beside what may not be taken: only the recording is taken and removed, all else stays as
// it is and has its reason.
func TestSpool(t *testing.T) {
	t.Parallel()
	c := config(t)
	secret := filepath.Join(filepath.Dir(c.Dir), "secret.heapcam")
	if err := os.WriteFile(secret, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(c.Dir, name) }
	record(t, in("Shop-7-1"))
	if err := errors.Join(
		os.Symlink(secret, in("link.heapcam")),
		os.Link(secret, in("named-twice.heapcam")),
		os.WriteFile(in("notes.txt"), []byte("x"), 0o600),
		os.WriteFile(in("broken.heapcam"), []byte("neither a container nor a ring file"), 0o600),
		os.Mkdir(in("empty"), 0o700),
		unix.Mkfifo(in("pipe.hcr"), 0o600),
		os.WriteFile(in(".hidden"), []byte("x"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"link.heapcam": "regular file", "named-twice.heapcam": "2 names", "notes.txt": "neither a ring",
		"broken.heapcam": "", "empty": "neither a ring", "pipe.hcr": "regular file",
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, s)
	wait(t, s, func(st *Status) bool {
		_, err := os.Lstat(in("Shop-7-1")) // counted first, removed then
		return st.Taken == 1 && len(st.Left) == len(want) && errors.Is(err, os.ErrNotExist)
	})
	for _, i := range s.Status().Left {
		why, ok := want[i.Name]
		if !ok || i.Reason == "" || !strings.Contains(i.Reason, why) {
			t.Errorf("%s is left: %q, want %q", i.Name, i.Reason, why)
		}
		if _, err := os.Lstat(in(i.Name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat(in("Shop-7-1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was taken is still there: %v", err)
	}
	taken, _ := filepath.Glob(filepath.Join(c.Out, "*", "*.hcr"))
	if len(taken) != 1 {
		t.Errorf("%q are in the folder for recordings", taken)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "x" {
		t.Errorf("what a link points to: %q, %v", b, err)
	}
}

// TestSpoolKeepsTheTotal: a recording that max_total_size leaves no room for waits, and status says why.
func TestSpoolKeepsTheTotal(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Disk = quota.NewDisk(quota.DiskConfig{Out: c.Out, Max: 4 << 10, Ring: 4 << 10})
	record(t, filepath.Join(c.Dir, "Shop-7-1"))
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	watch(t, s)
	wait(t, s, func(st *Status) bool {
		return len(st.Left) == 1 && strings.Contains(st.Left[0].Reason, "max_total_size")
	})
	if own, _ := os.ReadDir(c.Out); s.Status().Taken != 0 || len(own) != 0 {
		t.Errorf("%v are in the folder for recordings", own)
	}
}

// TestNew: what an agent that was killed has begun to take is removed; the spool folder cannot be that for recordings.
func TestNew(t *testing.T) {
	c := config(t)
	rest, kept := filepath.Join(c.Out, takingName+"77"), filepath.Join(c.Out, "Shop-7-1")
	if err := errors.Join(os.Mkdir(rest, 0o700), os.Mkdir(kept, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := New(c); err != nil {
		t.Fatal(err)
	}
	_, err := os.Stat(kept)
	if _, gone := os.Stat(rest); err != nil || !errors.Is(gone, os.ErrNotExist) {
		t.Errorf("what was begun: %v; a recording: %v", gone, err)
	}
	for _, dir := range []string{"spool", c.Out, c.Out + "/"} {
		bad := c
		bad.Dir = dir
		if _, err := New(bad); err == nil {
			t.Errorf("%s is taken for a spool folder", dir)
		}
	}
}

// TestRecordingName: whatever a text from elsewhere holds, its name stays within the folder and is no other thing's.
func TestRecordingName(t *testing.T) {
	for id, want := range map[string]string{
		"Shop-7-1": "Shop-7-1", "": "jvm", "..": "jvm", "../../etc/passwd": "_.._etc_passwd",
		quota.IncidentsName: "recording", "a\nb\x1b[31m": "a_b__31m", ".taking-7": "taking-7",
	} {
		if got := recordingName(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		b := make([]byte, r.IntN(300))
		for i := range b {
			b[i] = "./\\-_\x00\nA"[r.IntN(8)]
		}
		got := recordingName(string(b))
		if got == "" || got != filepath.Base(got) || strings.HasPrefix(got, ".") || len(got) > 255 ||
			strings.ContainsAny(got, "/\\\x00\n") {
			t.Fatalf("%q: %q", b, got)
		}
	}
}

func watch(t *testing.T, s *Spool) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Watch(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func wait(t *testing.T, s *Spool, f func(*Status) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(s.Status()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %+v", s.Status())
		}
	}
}
