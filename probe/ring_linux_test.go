package probe_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/heapcam/heapcam/internal/tiers"
	"github.com/heapcam/heapcam/shmring"
	"github.com/heapcam/heapcam/trace"
)

// ringstress compiles the ring of the probe with a writer that has no JVM.
func ringstress(t *testing.T, cc string, more ...string) string {
	t.Helper()
	includes, _ := filepath.Glob("/usr/lib/jvm/*/include/jvmti.h")
	if _, err := exec.LookPath(cc); err != nil || len(includes) == 0 {
		t.Skipf("not run: the probe's ring by itself (no %s, or no jvmti.h)", cc)
	}
	include, out := filepath.Dir(includes[0]), filepath.Join(t.TempDir(), "ringstress")
	args := append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-isystem", include, "-isystem",
		include + "/linux", "-I.", "-Isrc", `-DHC_PROBE_VERSION="stress"`, "-D_GNU_SOURCE", "-o", out,
		"testdata/ringstress.c", "src/ring_file_posix.c", "src/os_posix.c", "src/pool.c", "src/native.c", "-pthread",
		"-ldl"}, more...)
	if b, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cc, err, b)
	}
	return out
}

// TestRingStress: what two threads commit to the ring as fast as they can, an agent reads whole and in order, while the
// ring wraps, is full, and goes over to larger ones; text and state of the end belong together. Below qemu-user also as
// code of arm64, with pages of 4, 16 and 64 KiB, at all of which the data is mapped twice in a row. That shows what the
// compiled code does; the order of memory that arm64 allows is TestLitmus's.
func TestRingStress(t *testing.T) {
	tiers.Gate(t, "half a minute of the ring protocol")
	seconds := 3
	if os.Getenv("HEAPCAM_FULL") != "" || os.Getenv("HEAPCAM_ARM64_ROOT") != "" {
		seconds = 10
	}
	t.Run("here", func(t *testing.T) { stress(t, seconds, os.Getpagesize(), ringstress(t, "gcc")) })
	for _, page := range []int{4096, 16384, 65536} {
		t.Run(fmt.Sprintf("arm64, pages of %d", page), func(t *testing.T) {
			qemu, err := exec.LookPath("qemu-aarch64-static")
			if err != nil {
				t.Skip("not run: the probe's ring as code of arm64 (no qemu-aarch64-static: make test-arm64)")
			}
			program := ringstress(t, "aarch64-linux-gnu-gcc", "-static", "-Wl,-z,max-page-size=65536")
			stress(t, seconds, page, qemu, "-p", fmt.Sprint(page), program)
		})
	}
}

func stress(t *testing.T, seconds, page int, command ...string) {
	c := exec.Command(command[0], append(command[1:], t.TempDir(), fmt.Sprint(seconds))...)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		_ = c.Wait()
	}()
	lines := bufio.NewScanner(out)
	lines.Scan()
	said := strings.Fields(lines.Text())
	if len(said) != 3 || said[1] != fmt.Sprint(page) || said[2] != "mirrored" {
		t.Fatalf("the writer says %q", lines.Text())
	}
	r := open(t, said[0], c.Process.Pid)
	defer r.Close()
	if _, err := r.Acquire(); err != nil {
		t.Fatal(err)
	}
	last, read := drain(t, r)
	lines.Scan()
	s, err := r.Status()
	if want := fmt.Sprintf("last %d, capacity %d", last, r.Capacity()); err != nil || s.Reason != want ||
		lines.Text() != want {
		t.Errorf("read: %s; the ring's text: %s; the writer: %s (%v)", want, s.Reason, lines.Text(), err)
	}
	if last < 1000 || r.Capacity() == 4<<20 {
		t.Errorf("only %d blocks, capacity %d", last, r.Capacity())
	}
	t.Logf("%d blocks, %d MiB, ring of %d MiB at the end, %d epochs", last, read>>20, r.Capacity()>>20, s.Epochs)
}

func open(t *testing.T, path string, pid int) *shmring.Ring {
	t.Helper()
	for range 500 {
		r, err := shmring.Open(path, shmring.Options{HostPID: pid})
		if err == nil {
			return r
		}
		if !errors.Is(err, shmring.ErrNotReady) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the ring never was ready")
	return nil
}

// drain reads until the writer has ended, and gives the number of the last block and how many bytes there were.
func drain(t *testing.T, r *shmring.Ring) (last, read uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := r.Wait(ctx)
		if errors.Is(err, shmring.ErrEnded) {
			return last, read
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Read(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		for block, err := range trace.Blocks(b.Data) {
			if err != nil {
				t.Fatal(err)
			}
			if last++; block.Seq != last || len(block.Payload) != int(8*(last*2654435761%3000)) {
				t.Fatalf("block %d has the number %d and %d bytes", last, block.Seq, len(block.Payload))
			}
			for i := 0; i < len(block.Payload); i += 8 {
				if v := binary.LittleEndian.Uint64(block.Payload[i:]); v != last*0x9e3779b97f4a7c15+uint64(i/8) {
					t.Fatalf("block %d: word %d is %x", last, i/8, v)
				}
			}
		}
		read += uint64(len(b.Data))
		if err := r.Commit(b.End); err != nil {
			t.Fatal(err)
		}
	}
}
