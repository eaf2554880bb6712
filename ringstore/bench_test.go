//go:build unix

package ringstore

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/pull"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// fill writes a ring of about so many bytes without compression, closed but for the last file if open.
func fillRing(b *testing.B, dir string, size int64, open bool) *Store {
	s, _, err := Open(Config{Dir: dir, MaxTraceSize: size, Deviation: 0.25, Compression: "none"},
		folder.Identity{Session: session})
	if err != nil {
		b.Fatal(err)
	}
	payload := random(rand.New(rand.NewPCG(1, 2)), 1<<20)
	for i := uint64(1); s.Stats().Bytes < size*99/100; i++ {
		info := segment.FrameInfo{Source: i, T0: i * 1e8, T1: i * 1e8, FirstGC: i, LastGC: i}
		st := s.Stats()
		if st.Rotate {
			err = s.Rotate(payload, info)
		} else {
			err = s.Append(payload[:1<<16], info)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if open { // as a kill leaves it
		s.syncer.bg.Wait()
		s.abandon()
		return nil
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	return nil
}

// BenchmarkRecovery opens a ring of 1 GiB that a kill left; HEAPCAM_FULL only.
func BenchmarkRecovery(b *testing.B) {
	size := int64(64 << 20)
	if os.Getenv("HEAPCAM_FULL") != "" {
		size = 1 << 30
	}
	dir := filepath.Join(b.TempDir(), "rec")
	fillRing(b, dir, size, true)
	b.ResetTimer()
	for range b.N {
		s, _, err := Open(Config{Dir: dir, MaxTraceSize: size, Compression: "none"}, folder.Identity{Session: session})
		if err != nil {
			b.Fatal(err)
		}
		if s.active == nil {
			b.Fatal("the open file was not gone on with")
		}
		s.abandon()
	}
}

// BenchmarkPull pulls a ring into a file.
func BenchmarkPull(b *testing.B) {
	size := int64(256 << 20)
	dir := filepath.Join(b.TempDir(), "rec")
	fillRing(b, dir, size, false)
	b.SetBytes(size)
	for range b.N {
		f, err := os.Create(filepath.Join(b.TempDir(), "x"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := pull.Pull(context.Background(), dir, f, pull.Options{}); err != nil {
			b.Fatal(err)
		}
		f.Close()
		os.Remove(f.Name())
	}
}

// BenchmarkCopy is what BenchmarkPull is to be compared with: the files copied as they are.
func BenchmarkCopy(b *testing.B) {
	size := int64(256 << 20)
	dir := filepath.Join(b.TempDir(), "rec")
	fillRing(b, dir, size, false)
	b.SetBytes(size)
	for range b.N {
		f, err := os.Create(filepath.Join(b.TempDir(), "x"))
		if err != nil {
			b.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(dir, "*"+segment.Suffix))
		buf := make([]byte, 1<<18)
		for _, n := range names {
			r, err := os.Open(n)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{r}, buf); err != nil {
				b.Fatal(err)
			}
			r.Close()
		}
		f.Close()
		os.Remove(f.Name())
	}
}

// BenchmarkAppend appends frames without compression to a real disk.
func BenchmarkAppend(b *testing.B) {
	s, _, err := Open(Config{Dir: filepath.Join(b.TempDir(), "rec"), MaxTraceSize: 256 << 20, Compression: "none"},
		folder.Identity{Session: session})
	if err != nil {
		b.Fatal(err)
	}
	payload := random(rand.New(rand.NewPCG(1, 2)), 1<<18)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i++
		info := segment.FrameInfo{Source: i}
		if s.active == nil || i%64 == 0 && s.Stats().Rotate {
			err = s.Rotate(payload, info)
		} else {
			err = s.Append(payload, info)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}
