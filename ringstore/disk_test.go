//go:build unix

package ringstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/heapcam/heapcam/ringstore/folder"
	"github.com/heapcam/heapcam/ringstore/quota"
	"github.com/heapcam/heapcam/ringstore/segment"
)

// TestDisk writes more than five times M to a real disk, while another goroutine asks all the time what the folder
// occupies.
func TestDisk(t *testing.T) {
	m := int64(4 << 20)
	if os.Getenv("HEAPCAM_FULL") != "" {
		m = 64 << 20
	}
	for _, d := range []float64{0.5, 0.25, 0.1} {
		for _, head := range []float64{0.02, 0.5, 1.5} { // of T
			t.Run(fmt.Sprintf("d=%v,head=%vT", d, head), func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "rec")
				s, _, err := Open(Config{Dir: dir, MaxTraceSize: m, Deviation: d, Compression: "none"},
					folder.Identity{Session: session})
				if err != nil {
					t.Fatal(err)
				}
				var most atomic.Int64
				stop, done := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					for {
						select {
						case <-stop:
							return
						default:
							most.Store(max(most.Load(), occupiedNow(dir)))
						}
					}
				}()
				r := rand.New(rand.NewPCG(1, 2))
				buf := random(r, int(m))
				var written int64
				low := int64(1 << 62)
				for i := uint64(1); written < 5*m; i++ {
					n := 1 + r.IntN(int(m)/100)
					var err error
					if st := s.Stats(); st.Files == 0 || st.Rotate {
						n = max(1, int(head*d*float64(m)*(0.7+0.3*r.Float64())))
						err = s.Rotate(buf[:n], segment.FrameInfo{Source: i})
					} else {
						err = s.Append(buf[:n], segment.FrameInfo{Source: i})
					}
					if err == nil {
						written += int64(n)
					} else if !errors.Is(err, quota.ErrNoRoom) {
						t.Fatal(err)
					}
					if written > 2*m {
						low = min(low, occupiedNow(dir))
					}
				}
				close(stop)
				<-done
				if limit := m + int64(float64(m)*d); most.Load() > limit || most.Load() < m/2 {
					t.Errorf("at most %d bytes were occupied, the limit is %d", most.Load(), limit)
				}
				if g := s.Stats().Guarantee; g && low < m-int64(d*float64(m)) {
					t.Errorf("only %d bytes were left, M(1−d) is %d", low, m-int64(d*float64(m)))
				}
				t.Logf("occupied %.3f M at most, %.3f M at least; guarantee %v", float64(most.Load())/float64(m),
					float64(low)/float64(m), s.Stats().Guarantee)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// occupiedNow looks from outside. Files may come and go meanwhile, so it looks again until the list stays what it
// was: no sum of two instants.
func occupiedNow(dir string) int64 {
	for {
		var n int64
		names := ""
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			if err == nil {
				if st, err := os.Lstat(p); err == nil {
					n += st.Sys().(*syscall.Stat_t).Blocks * 512
					names += p
				}
			}
			return nil
		})
		again := ""
		filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
			again += p
			return nil
		})
		if names == again {
			return n
		}
	}
}
