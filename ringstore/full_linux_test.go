package ringstore_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/heapcam/heapcam/ringstore"
)

// TestFullDisk lets a small disk get full, by the ring and by others, and empty again: frames are refused and
// counted, the ring continues inside what it has, nothing torn is left, it grows again by itself.
func TestFullDisk(t *testing.T) {
	t.Run("tmpfs", func(t *testing.T) {
		mount := t.TempDir()
		if err := unix.Mount("tmpfs", mount, "tmpfs", 0, "size=2m"); err != nil {
			t.Skipf("not run: no tmpfs can be mounted: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		fullDisk(t, mount, func() error { return unix.Mount("tmpfs", mount, "tmpfs", unix.MS_REMOUNT, "size=32m") })
	})
	t.Run("ext4", func(t *testing.T) {
		mount, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(image, 32<<20); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-m", "0", image).CombinedOutput(); err != nil {
			t.Skipf("not run: no ext4 can be made: %v %s", err, out)
		}
		if out, err := exec.Command("mount", "-o", "loop", image, mount).CombinedOutput(); err != nil {
			t.Skipf("not run: no loop device: %v %s", err, out)
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", mount).CombinedOutput(); err != nil {
				t.Errorf("%v %s", err, out)
			}
		})
		var st unix.Statfs_t
		if err := unix.Statfs(mount, &st); err != nil {
			t.Fatal(err)
		}
		ballast := filepath.Join(mount, "ballast")
		if err := os.WriteFile(ballast, make([]byte, int64(st.Bavail)*st.Bsize-2<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		fullDisk(t, mount, func() error { return os.Remove(ballast) })
	})
}

// fill takes all room that a disk has left, and gives what gives it back.
func fill(t *testing.T, path string) (giveBack func()) {
	f, err := os.Create(path)
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	f.Close()
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// fullDisk runs on a disk of about 2 MiB; empty gives it at least 12.
func fullDisk(t *testing.T, mount string, empty func() error) {
	now := time.Unix(1e9, 0)
	d := filepath.Join(mount, "rec")
	cfg := ringstore.Config{Dir: d, MaxTraceSize: 8 << 20, Compression: "none", Now: func() time.Time { return now }}
	s, _, err := ringstore.Open(cfg, ringstore.Identity{Session: session})
	if err != nil {
		t.Fatal(err)
	}
	n, accepted, refused := uint64(0), 0, 0
	run := func(k int) {
		t.Helper()
		for range k {
			n++
			now = now.Add(100 * time.Millisecond)
			st := s.Stats()
			info := ringstore.FrameInfo{Source: n, T0: n, T1: n}
			if st.Files == 0 || st.Rotate {
				err = s.Rotate(frame(n, 3000), info)
			} else {
				err = s.Append(frame(n, 10000), info)
			}
			if n%7 == 0 {
				s.SyncSoon()
			}
			if err == nil {
				accepted++
			} else if refused++; !errors.Is(err, ringstore.ErrNoRoom) && !errors.Is(err, unix.ENOSPC) &&
				!errors.Is(err, ringstore.ErrNoFile) {
				t.Fatal(err)
			}
		}
	}
	whole := func() (frames int, last uint64) {
		t.Helper()
		names, _ := filepath.Glob(d + "/*.hcr")
		for _, p := range names {
			f, err := ringstore.OpenFile(p)
			if err != nil {
				t.Fatal(err)
			}
			for fr, err := range f.Frames() {
				if err != nil {
					t.Fatal(err)
				}
				if string(fr.Payload) != string(frame(fr.Source, len(fr.Payload))) {
					t.Fatalf("frame %d is not what was written", fr.Source)
				}
				frames++
				last = fr.Source
			}
			f.Close()
		}
		return frames, last
	}
	run(1000)
	st := s.Stats()
	if !st.Capped || st.Faults == 0 || st.Evicted == 0 {
		t.Errorf("10 MB into 2 MiB: %+v", st)
	}
	if refused > 250 {
		t.Errorf("%d of 1000 frames were refused: the ring does not go on inside what it has", refused)
	}
	if k, last := whole(); k < 90 || last < n-20 {
		t.Errorf("%d frames are there, the newest is %d of %d", k, last, n)
	}
	t.Logf("full: %d accepted, %d refused; %+v", accepted, refused, st)

	// Others take what the ring gave up for its next file: it continues inside what it has left, all the same.
	for k := st.Evicted; s.Stats().Evicted == k; {
		run(1)
	}
	giveBack := fill(t, filepath.Join(mount, "taken"))
	run(200)
	refused = 0
	run(1000)
	if _, last := whole(); refused > 300 || last < n-20 {
		t.Errorf("others took its room: %d of 1000 were refused, the newest is %d of %d", refused, last, n)
	}
	giveBack()
	now = now.Add(time.Minute)
	run(1000)

	// A recorder that comes back finds the disk full.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, _, err = ringstore.Open(cfg, ringstore.Identity{Session: session}); err != nil {
		t.Fatal(err)
	}
	run(300)
	if _, last := whole(); last < n-20 {
		t.Errorf("after coming back the newest is %d of %d", last, n)
	}

	// There is room again.
	if err := empty(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	run(10)
	refused = 0
	run(1000)
	st = s.Stats()
	if refused > 0 || st.Capped || st.Bytes < 6<<20 {
		t.Errorf("with room again %d of 1000 were refused: %+v", refused, st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if k, last := whole(); k < 500 || last != n {
		t.Errorf("%d frames are there, the newest is %d of %d", k, last, n)
	}
	if left, _ := os.ReadDir(d); len(left) < 3 {
		t.Errorf("left: %v", left)
	}
}
